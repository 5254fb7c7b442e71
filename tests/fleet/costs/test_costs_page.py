"""The page of costs: where a month went, what of it bought nothing, and only for members."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.spend.models import CostProgress, ExchangeRate
from fleet.states import GpuState
from fleet.teams.models import Project
from tests.fleet.costs.seeding import spend_on

PAGE = "/t/acme/costs/"
NOW = datetime(2026, 11, 17, 8, 42, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _noon():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def diffusion(acme):
    return Project.objects.create(team=acme, name="vid-diffusion", slug="vid-diffusion")


@pytest.fixture
def machine(make_instance):
    return make_instance(name="train-01", gpus=1)


@pytest.fixture
def spent(acme, machine, diffusion, bob):
    """$30 of a project on 3 November, of which $10 held idle; $5 of nobody on the 4th; $20 of the project on 3 October."""
    halves = {GpuState.WORKING: "20", GpuState.HELD_IDLE: "10"}
    hours = {GpuState.WORKING: 8 * 3600.0, GpuState.HELD_IDLE: 4 * 3600.0}
    spend_on(
        acme, date(2026, 11, 3), "30", instance=machine, project=diffusion, owner=bob, states=halves, gpu_seconds=hours
    )
    spend_on(acme, date(2026, 11, 4), "5", instance=machine, meter="disk_running")
    spend_on(acme, date(2026, 10, 3), "20", instance=machine, project=diffusion)
    spend_on(acme, date(2026, 10, 30), "999", instance=machine, project=diffusion)


def text_of(response):
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def chart_of(response):
    found = re.search(r'<script id="went-data" type="application/json">(.+?)</script>', response.content.decode())
    assert found, "no figures for the chart"
    return json.loads(found[1])


def test_a_viewer_sees_it_and_another_team_learns_nothing(vera, charlie, as_user, acme):
    assert as_user(vera).get(PAGE).status_code == 200
    assert as_user(charlie).get(PAGE).status_code == 404


def test_the_month_asked_for_is_chosen(vera, as_user, acme):
    assert "Costs in February 2026" in text_of(as_user(vera).get(f"{PAGE}?month=2026-02"))


def test_it_says_where_it_went_beside_the_same_days_before(vera, as_user, spent):
    text = text_of(as_user(vera).get(PAGE))
    assert "Where $35 went" in text
    # 30 October is not among the same days of a month that is 17 days old.
    assert "vid-diffusion $30 86% $20 +50% $3.75 $10 33%" in text
    assert "no project $5.00 14% none none worked $0.00" in text
    assert "All $35 $20 +75%" in text


def test_the_chart_stacks_days(vera, as_user, spent):
    chart = chart_of(as_user(vera).get(PAGE))
    assert (chart["days"][0], chart["days"][-1]) == ("2026-11-01", "2026-11-17")
    assert [(layer["name"], layer["y"][2], layer["y"][3]) for layer in chart["traces"]] == [
        ("vid-diffusion", 30.0, 0.0),
        ("no project", 0.0, 5.0),
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("by=state", "Working $25"),
        ("by=meter", "disks while running $5.00"),
        ("by=owner", "no owner $5.00"),
        ("by=machine", "train-01 $35"),
        ("by=label&label=tier", "without this label $35"),
        ("by=nonsense", "vid-diffusion $30"),
        ("owner=none", "Where $5.00 went"),
        ("owner=x", "Where $35 went"),
        ("meter=disk_running", "Where $5.00 went"),
    ],
)
def test_it_splits_and_filters(vera, as_user, spent, query, words):
    assert words in text_of(as_user(vera).get(f"{PAGE}?{query}"))


def test_many_parts_are_drawn_as_a_few_layers_that_add_up(vera, as_user, acme, machine):
    for number in range(12):
        project = Project.objects.create(team=acme, name=f"p{number}", slug=f"p{number}")
        spend_on(acme, date(2026, 11, 2), Decimal(number + 1), instance=machine, project=project)
    chart = chart_of(as_user(vera).get(PAGE))
    assert len(chart["traces"]) == 7
    assert sum(layer["y"][1] for layer in chart["traces"]) == 78


def test_machines_that_are_not_drawn_are_one_layer(vera, as_user, acme, account, make_instance):
    """Thousands of machines have a day each, every day: only those that are drawn are read by the day."""
    for number in range(12):
        spend_on(acme, date(2026, 11, 2), Decimal(number + 1), instance=make_instance(name=f"train-{number}"))
    spend_on(acme, date(2026, 11, 3), "50", account=account, meter="network_volume")
    client = as_user(vera)
    page = client.get(f"{PAGE}?by=machine")
    chart = chart_of(page)
    assert [layer["name"] for layer in chart["traces"]][1:] == [
        "train-11",
        "train-10",
        "train-9",
        "train-8",
        "train-7",
        "others",
    ]
    assert chart["traces"][0]["y"][2] == 50.0
    assert sum(layer["y"][1] for layer in chart["traces"]) == 78
    assert chart["traces"][-1]["y"][1] == 1 + 2 + 3 + 4 + 5 + 6 + 7
    assert "train-0 $1.00" in text_of(page)
    assert "Where $128 went" in text_of(page)


def test_it_says_what_bought_nothing_and_in_which_machines(vera, as_user, spent):
    text = text_of(as_user(vera).get(PAGE))
    assert "$10 of November bought nothing" in text
    assert "Held idle, 4 GPU-hours $10" in text
    assert "29% of spend; October, same days: 0%" in text
    assert "One machine is 100% of it" in text


def test_money_without_a_rate_is_named_and_in_no_total(vera, as_user, acme, machine):
    spend_on(acme, date(2026, 11, 3), "30", instance=machine)
    spend_on(acme, date(2026, 11, 3), "71.60", instance=machine, currency="CNY")
    text = text_of(as_user(vera).get(PAGE))
    assert "Where $30 went" in text
    assert "¥71.60 has no rate to USD and is in no total." in text
    ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=date(2026, 11, 1), rate="0.25", source="ECB")
    text = text_of(as_user(vera).get(PAGE))
    assert "Where $48 went" in text
    assert "1 CNY at 0.25 USD since 2026-11-01 (ECB)" in text


def test_the_strip_shows_the_month_to_date(vera, as_user, acme, spent):
    assert "nothing is counted yet" in text_of(as_user(vera).get("/t/acme/instances/"))
    CostProgress.objects.create(team=acme, summed_until=NOW, time_zone="UTC")
    assert "November to date November 0 s $35 $10 bought nothing" in text_of(as_user(vera).get("/t/acme/instances/"))


def test_a_machine_shows_its_month(vera, as_user, spent, machine):
    text = text_of(as_user(vera).get(f"/t/acme/instances/{machine.pk}/"))
    assert "$35.00 in November so far" in text
    assert "disks while running $5.00" in text


def test_its_queries_do_not_grow_with_machines(vera, as_user, acme, make_instance, diffusion):
    def count() -> int:
        client = as_user(vera)
        client.get(PAGE)
        with CaptureQueriesContext(connection) as queries:
            client.get(PAGE)
        return len(queries)

    spend_on(acme, date(2026, 11, 3), "3", instance=make_instance(name="m-0"), project=diffusion, state=GpuState.FREE)
    few = count()
    for number in range(1, 30):
        project = Project.objects.create(team=acme, name=f"p{number}", slug=f"p{number}")
        spend_on(
            acme,
            date(2026, 11, 3),
            "3",
            instance=make_instance(name=f"m-{number}"),
            project=project,
            state=GpuState.FREE,
        )
    assert count() == few
