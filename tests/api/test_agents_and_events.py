from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from agent import __version__ as version
from fleet.telemetry.models import Agent, MachineEvent
from tests.api.conftest import NOW


@pytest.fixture
def ids(fleet, acme, as_token):
    """ids("agents", paused="true") -> the ids that the filter leaves."""
    client = as_token(acme)
    return lambda name, **parameters: [
        row["id"] for row in client.get(f"/api/v1/{name}/", parameters).json()["results"]
    ]


def test_an_agent_says_what_the_server_had_to_drop(fleet, acme, as_token):
    Agent.objects.update(dropped_values={"utilization_percent": 3}, clock_skew_seconds=7.5)
    row = as_token(acme).get(f"/api/v1/agents/{fleet.agent.pk}/").json()
    assert (row["dropped_values"], row["clock_skew_seconds"]) == ({"utilization_percent": 3}, 7.5)
    assert row["shipped_version"] == version


@pytest.mark.parametrize(
    ("parameters", "is_left"),
    [
        ({"paused": "false"}, True),
        ({"paused": "true"}, False),
        ({"revoked": "true"}, False),
        ({"conflict": "false"}, True),
        ({"conflict": "true"}, False),
        ({"nvml_state": "hung"}, False),
        ({"version": "0.1.0"}, True),
    ],
)
def test_agents_are_filtered(fleet, ids, parameters, is_left):
    assert ids("agents", **parameters) == ([fleet.agent.pk] if is_left else [])


def test_agents_that_fell_silent(fleet, ids):
    now = timezone.now()
    assert ids("agents", silent_since=(now - timedelta(minutes=5)).isoformat()) == []
    assert ids("agents", silent_since=(now + timedelta(minutes=5)).isoformat()) == [fleet.agent.pk]


def test_events_come_newest_first_and_are_filtered(fleet, ids):
    first = MachineEvent.objects.get()
    later = MachineEvent.objects.create(instance=fleet.bare, at=NOW + timedelta(minutes=1), kind="agent_started")
    assert ids("events") == [later.pk, first.pk]
    assert ids("events", kind="xid") == [first.pk]
    assert ids("events", code=79) == [first.pk]
    assert ids("events", code=48) == []
    assert ids("events", gpu=fleet.gpus[0].pk) == [first.pk]
    assert ids("events", since=later.at.isoformat()) == [later.pk]
    assert ids("events", until=later.at.isoformat()) == [first.pk]
