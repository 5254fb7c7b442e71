from __future__ import annotations

import csv
from io import StringIO

import pytest

from fleet.spreadsheets import disarmed

from .conftest import HELD, WORKING


def rows(client, query=""):
    response = client.get(f"/t/acme/instances.csv{query}")
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(StringIO(response.text)))


def test_it_has_the_figures_of_the_list(make_machine, alice, as_user):
    make_machine(name="train-01", readings=[WORKING, HELD], price="8.00")
    [row] = rows(as_user(alice))
    assert (row["name"], row["gpus_working"], row["gpus_held"], row["busy_percent"]) == ("train-01", "1", "1", "48")
    assert (float(row["price_per_hour"]), float(row["idle_price_per_hour"]), row["currency"]) == (8, 4, "USD")


def test_it_follows_the_filters(make_machine, alice, as_user):
    make_machine(name="busy", readings=[WORKING])
    make_machine(name="lazy", readings=[HELD])
    assert [row["name"] for row in rows(as_user(alice), "?state=held")] == ["lazy"]


def test_what_is_not_known_stays_empty(make_instance, alice, as_user):
    make_instance(name="dark")
    [row] = rows(as_user(alice))
    assert (row["price_per_hour"], row["busy_percent"], row["read_at"]) == ("", "", "")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_name_cannot_be_a_formula(start):
    assert disarmed(f"{start}cmd|calc") == f"'{start}cmd|calc"


def test_numbers_below_zero_stay_numbers():
    assert disarmed(-3) == "-3"
