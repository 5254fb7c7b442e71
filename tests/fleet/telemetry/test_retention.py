"""Events and environments do not pile up for ever, whatever a machine sends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.inventory.models import EnvironmentReport
from fleet.telemetry import retention
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.retention import prune_records
from fleet.telemetry.serving.models import ServingLatest

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def event(machine, days: float) -> MachineEvent:
    return MachineEvent.objects.create(instance=machine, at=NOW - timedelta(days=days), kind="xid", code=31)


def test_events_are_kept_for_thirteen_months(make_instance):
    machine = make_instance()
    kept = [event(machine, 1), event(machine, 399)]
    event(machine, 401)
    assert prune_records(now=NOW)["events"] == 1
    assert set(MachineEvent.objects.all()) == set(kept)


def test_a_machine_that_floods_loses_its_own_oldest(make_instance, monkeypatch):
    monkeypatch.setattr(retention, "MAX_EVENTS_PER_MACHINE", 3)
    monkeypatch.setattr(retention, "MAX_ENVIRONMENTS_PER_MACHINE", 2)
    loud, quiet = make_instance(name="loud"), make_instance(name="quiet")
    for days in range(10):
        event(loud, days)
        EnvironmentReport.objects.create(
            instance=loud, reported_at=NOW - timedelta(days=days), digest=str(days), data={}
        )
    event(quiet, 300)
    assert prune_records(now=NOW) == {"events": 7, "environments": 8, "endpoints": 0}
    assert [kept.at for kept in loud.events.order_by("-at")] == [NOW - timedelta(days=days) for days in range(3)]
    assert [kept.digest for kept in loud.environments.order_by("-reported_at")] == ["0", "1"]
    assert quiet.events.count() == 1


def test_serving_endpoints_that_were_silent_for_thirteen_months_make_room(make_instance):
    machine = make_instance()
    for port, days in ((8000, 399), (8001, 401)):
        heard = NOW - timedelta(days=days)
        ServingLatest.objects.create(instance=machine, engine="vllm", port=port, sampled_at=heard, received_at=heard)
    assert prune_records(now=NOW)["endpoints"] == 1
    assert ServingLatest.objects.get().port == 8000
