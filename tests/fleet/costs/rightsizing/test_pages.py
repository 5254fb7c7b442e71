"""What pages say of right-sizing, to whom, and putting a suggestion away on them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.rightsizing.look import look_at_machines
from fleet.costs.rightsizing.models import RightSizing
from fleet.inventory.models import Hold, HoldKind
from tests.fleet.costs.rightsizing.machines import NOW

COSTS, PAGE = "/t/acme/costs/", "/t/acme/costs/right-sizing/"


@pytest.fixture
def looked(acme, rented, hours, offered):
    """rp-a100-03 can do with three GPUs; busy-01 can not."""
    machine = rented()
    hours(machine)
    other = rented("busy-01", gpus=1, gpu_model="H100 SXM", price_per_hour="3.49")
    hours(other, working=1, memory=0.3, busy=91.0)
    offered()
    offered("one", gpu_count=1, price_per_hour="1.59")
    look_at_machines(team=acme, now=NOW)
    return machine


def text_of(response):
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_the_costs_page_says_what_would_do_and_what_was_left_alone(vera, as_user, looked):
    text = text_of(as_user(vera).get(COSTS))
    assert "One smaller or cheaper machine would do: $1,197 a month" in text
    assert "3 of 4 GPUs worked at once, 85% busy, peak 68% memory 4 to 3 × A100 SXM 80 GB $6.56 to $4.92/h" in text
    assert "$1,197 730 h a new machine: about 25 min to move 289 GiB" in text
    assert "Looked at and left alone: busy-01 (91% busy)" in text


def test_a_month_that_is_over_says_nothing_of_it(vera, as_user, looked):
    assert "would do" not in text_of(as_user(vera).get(f"{COSTS}?month=2026-10"))


def test_a_held_machine_is_marked(vera, bob, as_user, looked):
    Hold.objects.create(instance=looked, kind=HoldKind.PERSON, owner=bob, reason="paper of Friday")
    assert "held: bob: paper of Friday" in text_of(as_user(vera).get(PAGE))
    Hold.objects.update(expires_at=NOW - timedelta(hours=1))
    assert "paper of Friday" not in text_of(as_user(vera).get(PAGE))


def test_an_operator_puts_it_away_with_a_reason(bob, vera, as_user, looked):
    row = RightSizing.objects.get(instance=looked)
    address = f"{PAGE}{row.pk}/dismiss/"
    assert as_user(vera).post(address, {"reason": "x"}).status_code == 403
    text = text_of(as_user(bob).post(address, {"reason": " "}, follow=True))
    assert "Give a reason" in text
    text = text_of(as_user(bob).post(address, {"reason": "grows in December"}, follow=True))
    assert "No machine is larger than its work" in text
    assert "bob: grows in December" in text


def test_another_team_sees_and_changes_nothing(charlie, as_user, looked):
    row = RightSizing.objects.get(instance=looked)
    assert as_user(charlie).get(PAGE).status_code == 404
    assert as_user(charlie).post(f"{PAGE}{row.pk}/dismiss/", {"reason": "x"}).status_code == 404
    assert as_user(charlie).post(f"/t/rival/costs/right-sizing/{row.pk}/dismiss/", {"reason": "x"}).status_code == 404
    assert "rp-a100-03" not in text_of(as_user(charlie).get("/t/rival/costs/right-sizing/"))


def test_names_are_escaped(vera, as_user, looked):
    looked.name = "<b>x</b>"
    looked.save()
    assert b"<b>x</b>" not in as_user(vera).get(PAGE).content


def test_before_the_first_look_it_says_what_it_takes(vera, as_user, acme):
    assert "7 days of readings" in text_of(as_user(vera).get(PAGE))


def test_queries_do_not_grow(vera, as_user, acme, looked, rented):
    client = as_user(vera)

    def count(page):
        client.get(page)
        with CaptureQueriesContext(connection) as queries:
            client.get(page)
        return len(queries)

    few = [count(page) for page in (COSTS, PAGE)]
    known = RightSizing.objects.get(instance=looked)
    for number in range(20):
        machine = rented(f"m-{number}")
        RightSizing.objects.create(
            team=acme, instance=machine, looked_at=NOW, kind="fewer", saving_per_month=10, currency="USD",
            change=known.change, measured=known.measured,
        )  # fmt: skip
    assert [count(page) for page in (COSTS, PAGE)] == few


def test_the_api_lists_and_puts_away(acme, bob, as_user, looked):
    client = as_user(bob)
    rows = client.get("/api/v1/right-sizing/?open=true").json()["results"]
    assert [(row["instance"], row["saving_per_month"], row["change"]["gpus"]) for row in rows] == [
        (looked.pk, "1197.20", 3)
    ]
    alone = client.get("/api/v1/right-sizing/?why=busy").json()["results"]
    assert [row["why_words"] for row in alone] == ["91% busy"]
    address = f"/api/v1/right-sizing/{rows[0]['id']}/dismiss/"
    assert client.post(address, {}, content_type="application/json").json()["field"] == "reason"
    put_away = client.post(address, {"reason": "later"}, content_type="application/json").json()
    assert (put_away["dismissed_by"], put_away["dismissed_reason"]) == ("bob", "later")
    assert client.post(address, {"reason": "later"}, content_type="application/json").status_code == 409
    assert client.get("/api/v1/right-sizing/?open=true").json()["results"] == []
