"""What was spent over the API: the sums of the page, split and filtered, and what it refuses."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
import time_machine

from fleet.states import GpuState
from tests.fleet.costs.seeding import spend_on

PATH = "/api/v1/costs/"


@pytest.fixture(autouse=True)
def _november():
    with time_machine.travel(datetime(2026, 11, 17, 8, tzinfo=UTC), tick=False):
        yield


@pytest.fixture
def spent(acme, project, make_instance):
    machine = make_instance(name="train-01", gpus=1)
    states = {GpuState.WORKING: "20", GpuState.STALLED: "10.005"}
    spend_on(acme, date(2026, 11, 3), "30.005", instance=machine, project=project, states=states)
    spend_on(acme, date(2026, 11, 4), "5", instance=machine, meter="disk_running")
    return machine


def test_it_answers_the_present_month_unless_told(vera, as_user, spent, project):
    answer = as_user(vera).get(PATH, {"by": "project"}).json()
    assert (answer["start"], answer["end"], answer["currency"]) == ("2026-11-01", "2026-11-18", "USD")
    assert [(row["project"], row["total"]) for row in answer["results"]] == [(project.pk, "30.00"), (None, "5.00")]
    assert answer["all"]["total"] == "35.00"
    assert answer["all"]["states"] == {"working": "25.00", "stalled": "10.00"}
    assert (answer["all"]["idle"], answer["all"]["bought_nothing"]) == ("0.00", "10.00")


def test_it_splits_twice_and_filters(vera, as_user, spent, project):
    rows = as_user(vera).get(PATH, {"by": "day,meter", "instance": spent.pk, "meter": "compute"}).json()["results"]
    assert [(row["day"], row["meter"], row["total"]) for row in rows] == [("2026-11-03", "compute", "30.00")]


def test_nobody_of_another_team_sees_it(charlie, as_user, spent):
    assert as_user(charlie).get(PATH).json()["all"]["total"] == "0.00"
    assert as_user(charlie).get(PATH, {"team": "acme"}).status_code in {400, 404}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"start": "yesterday"}, "start"),
        ({"start": "2026-11-03", "end": "2026-11-03"}, "end"),
        ({"start": "2020-01-01"}, "end"),
        ({"start": "9999-12-01", "end": "9999-12-31"}, "start"),
        ({"by": "colour"}, "by"),
        ({"by": "day,month,project,owner"}, "by"),
        ({"by": "label"}, "label"),
        ({"currency": "usd"}, "currency"),
        ({"project": "mine"}, "project"),
        ({"meter": "gold"}, "meter"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(vera, as_user, acme, query, name):
    answer = as_user(vera).get(PATH, query)
    assert (answer.status_code, answer.json()["field"]) == (400, name)
