from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from fleet.costs.book.models import LedgerInterval
from fleet.inventory.models import Instance, Observation, ProviderAccount

NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)
NOW = NOON + timedelta(minutes=30)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def minutes(moment: datetime | None) -> float | None:
    return None if moment is None else (moment - NOON).total_seconds() / 60


def log(instance: Instance, seen: float, state="running", billing="full", price="2", **fields: Any) -> Observation:
    """A row of the log, `seen` minutes after NOON; `until` (minutes): how long the values before were seen."""
    until = fields.pop("until", None)
    values: dict[str, object] = {
        "raw_state": state,
        "currency": "USD",
        "rule_version": 1,
        "market": "on_demand",
        "price_per_hour": None if price is None else Decimal(price),
    }
    for name in ("started", "stopped"):
        told = fields.pop(name, None)
        values[f"provider_{name}_at"] = None if told is None else at(told)
    return Observation.objects.create(
        instance=instance,
        seen_at=at(seen),
        unchanged_until=None if until is None else at(until),
        state=state,
        billing=billing,
        **(values | fields),
    )


def stopped(instance: Instance, seen: float, **fields: Any) -> Observation:
    return log(instance, seen, **{"state": "stopped", "billing": "storage", **fields})


def missed(instance: Instance, seen: float, **fields: Any) -> Observation:
    """A complete list did not name it."""
    return log(instance, seen, listed=False, **fields)


def gone(instance: Instance, seen: float, **fields: Any) -> Observation:
    """Several did not."""
    return log(instance, seen, state="terminated", billing="none", listed=False, **fields)


def spans(instance: Instance, *kinds: str) -> list[tuple[object, ...]]:
    """(kind, start, end) in minutes, of all kinds or of those named."""
    rows = LedgerInterval.objects.filter(meter__instance=instance).select_related("meter").order_by("period", "pk")
    found = [(row.meter.kind, minutes(row.period.lower), minutes(row.period.upper)) for row in rows]
    return [one for one in found if not kinds or one[0] in kinds]


@pytest.fixture
def cloud(acme) -> ProviderAccount:
    """A provider that charges by the second, without a minimum."""
    return ProviderAccount.objects.create(team=acme, kind="runpod", name="RunPod")


@pytest.fixture
def machine(make_instance, cloud):
    return make_instance(account=cloud)
