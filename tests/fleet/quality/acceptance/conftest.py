from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.providers.base import Tenancy
from fleet.quality.acceptance.reports import write_report
from fleet.quality.models import AcceptanceReport
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import Agent
from tests.fleet.quality.acceptance.machines import measured

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def make_rented(make_instance):
    """A machine of two L40S, exclusive and managed, whose agent offers the test."""

    def make(name: str = "dev-01", **fields: Any):
        values = {
            "gpu_model": "L40S",
            "gpu_count": 2,
            "gpu_memory_mib": 46068,
            "vcpus": 40,
            "ram_mib": 320 * 1024,
            "disk_gb": 500,
            "tenancy": Tenancy.DEDICATED_HOST,
            **fields,
        }
        instance = make_instance(name=name)
        for field, value in values.items():
            setattr(instance, field, value)
        instance.save()
        Agent.objects.create(
            instance=instance, token_hash=name, prefix="rra_x", enrolled_at=NOW, heartbeat_at=NOW, actions=["accept"]
        )
        return instance

    return make


@pytest.fixture
def rented(make_rented):
    return make_rented()


@pytest.fixture
def tested(rented):
    """tested(result) is the report of a test of `rented` that ended at `at`."""

    def make(result: dict[str, Any] | None = None, *, instance: Any = None, at: datetime = NOW) -> AcceptanceReport:
        action = AgentAction.objects.create(
            instance=instance or rented,
            name="accept",
            state="done",
            asked_at=at - timedelta(minutes=1),
            ended_at=at,
            expires_at=at,
            result=measured() if result is None else result,
        )
        report = write_report(action_id=action.pk, now=at)
        assert report is not None
        return report

    return make
