"""Whether enough is known of a machine to say anything. What is unknown, thin or old is no reason to rent less."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.costs.rightsizing.sizing.figures import LeftAlone, Measured, Why
from fleet.providers.base import Market
from fleet.providers.gpus import NAMES

WINDOW = timedelta(days=30)
LEAST_SPAN = timedelta(days=7)
LEAST_COVERAGE = 0.5
# A machine that has said nothing for so long may do something else by now.
STALE_AFTER = timedelta(hours=48)
# Until the term ends, giving such a machine back saves nothing.
PAID_AHEAD = frozenset({Market.RESERVED, Market.PREPAID})


def lacking(machine: Measured, *, now: datetime) -> LeftAlone | None:
    """What is missing; None: enough is known."""
    return _of_machine(machine) or _of_readings(machine, now)


def _of_machine(machine: Measured) -> LeftAlone | None:
    if machine.gpu_model not in NAMES or not machine.gpus:
        return LeftAlone(Why.GPU_UNKNOWN)
    if machine.is_partitioned:
        return LeftAlone(Why.PARTITIONED)
    if not machine.price_per_hour:
        return LeftAlone(Why.PRICE_UNKNOWN)
    if machine.market in PAID_AHEAD:
        return LeftAlone(Why.COMMITTED)
    return None


def _of_readings(machine: Measured, now: datetime) -> LeftAlone | None:
    if machine.newest_at is None:
        return LeftAlone(Why.NOT_MEASURED)
    if machine.span_seconds < LEAST_SPAN.total_seconds():
        return LeftAlone(Why.TOO_NEW, {"days": machine.span_seconds // 86_400})
    if machine.coverage < LEAST_COVERAGE:
        return LeftAlone(Why.THIN, {"percent": int(machine.coverage * 100)})
    if now - machine.newest_at > STALE_AFTER:
        return LeftAlone(Why.STALE, {"hours": int((now - machine.newest_at).total_seconds() // 3600)})
    if not machine.working_at_once:
        return LeftAlone(Why.NEVER_WORKED)
    known = machine.peak_memory_bytes is not None and machine.utilization_mean is not None
    return None if known else LeftAlone(Why.NOT_MEASURED)
