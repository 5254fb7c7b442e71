"""Evaluating takes the same number of queries however many machines there are, and whatever happens to them."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import Alert


def queries(fleet) -> int:
    fleet.now += fleet.step
    fleet.speak()
    with CaptureQueriesContext(connection) as captured:
        evaluate_team(team=fleet.team, now=fleet.now)
    return len(captured)


def quiet(fleet) -> None:
    """Nothing happens."""


def lose_gpus(fleet) -> None:
    fleet.gpu = {"lost": True}


def overheat(fleet) -> None:
    fleet.gpu = {"temperature_celsius": 99.0}


@pytest.mark.parametrize("happens", [quiet, lose_gpus, overheat])
@pytest.mark.parametrize("over", [False, True], ids=["comes", "goes"])
def test_forty_machines_cost_as_many_queries_as_two(fleet, cloud, happens, over):
    counts = []
    for size in (2, 40):
        Alert.objects.all().delete()
        for number in range(len(fleet.machines), size):
            fleet.add(cloud, f"node-{number}")
        fleet.gpu = {}
        fleet.pass_time(400, step=50)
        happens(fleet)
        if over:
            fleet.pass_time(400, step=50)
            fleet.gpu = {}
            fleet.pass_time(40)
        counts.append(queries(fleet))
    assert counts[0] == counts[1]
    assert counts[1] <= 31
