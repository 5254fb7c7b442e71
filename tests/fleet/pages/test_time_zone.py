from __future__ import annotations

import pytest

from .conftest import WORKING


def zone(client):
    return client.get("/t/acme/").text.split('data-zone="')[1].split('"')[0]


@pytest.fixture
def client(alice, as_user, make_machine):
    make_machine(readings=[WORKING])
    return as_user(alice)


def test_without_a_wish_times_are_utc(client):
    assert zone(client) == "UTC"


def test_the_browser_names_its_zone(client):
    client.cookies["tz"] = "Europe/Berlin"
    assert zone(client) == "Europe/Berlin"


def test_a_chosen_zone_wins(client, alice):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    client.cookies["tz"] = "Europe/Berlin"
    assert zone(client) == "Asia/Shanghai"


@pytest.mark.parametrize("nonsense", ["../../etc/passwd", "Mars/Base", "\x00"])
def test_a_made_up_zone_is_ignored(client, nonsense):
    client.cookies["tz"] = nonsense
    assert zone(client) == "UTC"
