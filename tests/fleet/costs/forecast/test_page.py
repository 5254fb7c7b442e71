"""The forecast on the page of costs and over the API."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from fleet.costs.budgets.models import Budget
from fleet.costs.forecast.shown import adding_up, chance_words, whole_number
from fleet.inventory.plans.models import PlannedAction
from fleet.teams.audit import Actor
from fleet.teams.models import Scope
from fleet.teams.tokens import create_token
from tests.fleet.costs.november import NOW, november, on
from tests.fleet.costs.seeding import spend_on

PAGE = "/t/acme/costs/"
API = "/api/v1/costs/forecast/"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode()))


@pytest.fixture
def train(acme, account, make_instance, charge, summed, time_machine):
    time_machine.move_to(NOW, tick=False)
    machine = make_instance(price_per_hour=Decimal(2))
    charge(machine, "2")
    spend_on(acme, on(10), 100, instance=machine)
    PlannedAction.objects.create(
        team=acme, instance=machine, verb="stop", due_at=november(21), source="test", reason="test", notified_at=NOW
    )
    return machine


@pytest.fixture
def budget(acme):
    return Budget.objects.create(team=acme, name="All", amount=Decimal(300), currency="USD")


def test_it_says_how_the_month_gets_to_its_end(vera, as_user, train):
    text = text_of(as_user(vera).get(PAGE))
    assert "November heads for $340" in text
    assert "Spent so far $100 15.0 days at $2.00/h $720 1 machine with a planned stop −$480 Will end $340" in text
    assert "forecast, 8 in 10: $268 to $436" in text
    assert "there are 0 days of history, and 14 are needed to measure it" in text


def test_it_is_held_against_the_budget_of_the_team(vera, as_user, train, budget):
    text = text_of(as_user(vera).get(PAGE))
    assert "November heads for $340, $40 over budget" in text
    assert "Over the budget of $300 $40 80% of it, $240 about Wed 18 Nov All of it about Fri 20 Nov" in text
    assert "Ends under it 3 chances in 10" in text


def test_of_several_budgets_the_smallest_of_the_whole_team_counts(vera, as_user, train, budget, project):
    Budget.objects.create(team=train.team, name="Roomy", amount=Decimal(900), currency="USD")
    Budget.objects.create(team=train.team, name="Part", amount=Decimal(1), currency="USD", project=project)
    Budget.objects.create(team=train.team, name="Gone", amount=Decimal(2), currency="USD", removed_at=NOW)
    Budget.objects.create(team=train.team, name="Yuan", amount=Decimal(3), currency="CNY")
    assert "Over the budget of $300" in text_of(as_user(vera).get(PAGE))


def test_the_chart_has_what_was_spent_what_is_to_come_and_the_budget(vera, as_user, train, budget):
    page = as_user(vera).get(PAGE).content.decode()
    found = re.search(r'<script id="forecast-data" type="application/json">(.*?)</script>', page)
    assert found
    chart = json.loads(found[1])
    assert chart["spent"]["x"][-1] == chart["ahead"]["x"][0] == "2026-11-16T00:00"
    assert chart["spent"]["y"][-1] == chart["ahead"]["low"][0] == 100
    assert (chart["ahead"]["x"][-1], chart["ahead"]["y"][-1]) == ("2026-12-01T00:00", 340)
    assert chart["limit"] == {"y": 300.0, "text": "budget $300"}


def test_days_before_anything_was_charged_are_not_drawn(vera, as_user, train):
    """The money of the train is of the 10th: the nine days before it are not known to have cost nothing."""
    page = as_user(vera).get(PAGE).content.decode()
    found = re.search(r'<script id="forecast-data" type="application/json">(.*?)</script>', page)
    assert found
    spent = json.loads(found[1])["spent"]
    assert (spent["x"][0], spent["y"][:2]) == ("2026-11-10T00:00", [0, 100])


def test_a_month_that_is_over_has_no_forecast(vera, as_user, train):
    assert "heads for" not in text_of(as_user(vera).get(f"{PAGE}?month=2026-10"))


def test_what_is_in_no_figure_is_said(vera, as_user, train, make_instance, charge):
    charge(make_instance(name="dark"), None)
    assert "1 charge has a price that nobody told" in text_of(as_user(vera).get(PAGE))


@pytest.mark.parametrize(
    ("amounts", "total", "shown"),
    [
        (["100.4", "200.4", "300.4"], "601.2", [101, 200, 300]),
        (["33918.49", "30642.49", "-1796.99"], "62763.99", [33919, 30642, -1797]),
        (["100", "50"], "150", [100, 50]),
        (["0.40", "100"], "100.40", ["0.40", 100]),
    ],
)
def test_what_is_shown_adds_up(amounts, total, shown):
    found = adding_up([Decimal(one) for one in amounts], Decimal(total))
    assert found == [Decimal(one) for one in shown]
    if all(isinstance(one, int) for one in shown):
        assert sum(found) == whole_number(Decimal(total))


def test_a_chance_is_said_in_words():
    said = [chance_words(chance) for chance in (None, 0.0, 0.2, 0.94, 1.0)]
    assert said == ["not known", "hardly likely", "2 chances in 10", "9 chances in 10", "almost certain"]


def test_the_api_says_the_same(acme, alice, train):
    by_alice = Actor(alice, "alice", "page", "192.0.2.7")
    _token, new = create_token(actor=by_alice, team=acme, name="x", scope=Scope.READ)
    answer = Client(headers={"authorization": f"Bearer {new.secret}"}).get(API).json()
    assert (answer["spent"], answer["will_end"], answer["low"], answer["high"]) == (
        "100.00",
        "340.00",
        "268.00",
        "436.00",
    )
    assert [(part["kind"], part["amount"]) for part in answer["parts"]] == [
        ("spent", "100.00"),
        ("running", "720.00"),
        ("stops", "-480.00"),
    ]
    assert answer["days"][-1]["at"] == "2026-12-01T00:00:00Z"
    assert answer["band"]["measured"] is False


def test_the_api_filters_and_refuses_what_it_does_not_know(alice, as_user, train, project):
    spend_on(train.team, on(15), 48, instance=train, project=project)
    client = as_user(alice)
    assert client.get(API, {"project": project.pk}).json()["parts"][1] == {
        "kind": "running",
        "amount": "720.00",
        "count": 0,
        "says": "15.0 days at $2.00/h",
    }
    assert client.get(API, {"project": "x"}).status_code == 400
    assert client.get(API, {"planet": "x"}).status_code == 400


def test_another_team_learns_nothing_of_it(charlie, as_user, train):
    assert as_user(charlie).get(API).json()["will_end"] == "0.00"
    assert as_user(charlie).get(API, {"team": "acme"}).status_code == 404


def test_the_page_costs_a_constant_number_of_queries(vera, as_user, train, make_instance, charge):
    client = as_user(vera)
    client.get(PAGE)
    counts = []
    for number in (1, 20):
        for each in range(number):
            charge(make_instance(name=f"m{number}-{each}", expires_at=NOW + timedelta(days=3)), "1")
        with CaptureQueriesContext(connection) as queries:
            client.get(PAGE)
        counts.append(len(queries))
    assert counts[0] == counts[1]
