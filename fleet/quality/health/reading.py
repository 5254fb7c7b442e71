"""Reads what health is counted from, for many machines and days at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from django.db import connection

from fleet.alerts.models import Alert
from fleet.inventory.operations.models import Operation, OperationKind, OperationState
from fleet.quality.health.score import Happening, Kind
from fleet.quality.models import AcceptanceReport, AcceptanceVerdict
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.words import APPLICATION_XIDS

EVENT_KINDS: Mapping[str, Kind] = {
    "ecc_uncorrected": Kind.ECC,
    "row_remap_failure": Kind.REMAP,
    "gpu_lost": Kind.LOST,
    "reset_required": Kind.RESET,
    "driver_hung": Kind.HUNG,
}
VERDICT_KINDS: Mapping[str, Kind] = {
    AcceptanceVerdict.NOT_AS_RENTED: Kind.NOT_AS_RENTED,
    AcceptanceVerdict.SHORT: Kind.SHORT,
}
# NVML's reasons that are heat or the power supply: software and hardware thermal, hardware slowdown, power brake.
HELD_BACK = 0x20 | 0x40 | 0x08 | 0x80

# A GPU that is lost still has samples, and none of them reads anything. Instances of a cut card are counted with it.
_HOURS = """\
SELECT gpu.instance_id, (rolled.bucket_at AT TIME ZONE 'UTC')::date AS day, sum(rolled.coverage),
    3600 * sum(CASE WHEN rolled.memory_used_bytes_avg IS NULL AND rolled.power_watts_avg IS NULL AND rolled.utilization_percent_avg IS NULL
        THEN rolled.coverage ELSE 0 END)
FROM gpu_rollup_1h rolled JOIN fleet_gpu gpu ON gpu.id = rolled.gpu_id
WHERE gpu.instance_id = ANY(%s) AND gpu.mig_parent_uuid = '' AND rolled.bucket_at >= %s AND rolled.bucket_at < %s
GROUP BY gpu.instance_id, day
"""
_THROTTLED = """\
SELECT gpu.instance_id, (rolled.bucket_at AT TIME ZONE 'UTC')::date AS day, 300 * sum(rolled.coverage)
FROM gpu_rollup_5min rolled JOIN fleet_gpu gpu ON gpu.id = rolled.gpu_id
WHERE gpu.instance_id = ANY(%s) AND gpu.mig_parent_uuid = '' AND rolled.bucket_at >= %s AND rolled.bucket_at < %s
    AND rolled.throttle_reasons & %s <> 0
GROUP BY gpu.instance_id, day
"""

Place = tuple[int, date]


class Use(NamedTuple):
    """`lost_seconds` are part of `gpu_hours`: readings came, and had nothing of the GPU in them."""

    gpu_hours: float
    lost_seconds: float


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def use_of(instance_ids: Sequence[int], *, since: date, until: date) -> dict[Place, Use]:
    """By machine and day, of [since, until)."""
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, [list(instance_ids), midnight(since), midnight(until)])
        return {(pk, day): Use(hours or 0.0, lost or 0.0) for pk, day, hours, lost in cursor.fetchall()}


def throttled_of(instance_ids: Sequence[int], *, since: date, until: date) -> dict[Place, float]:
    """Seconds of GPUs in five minutes in which heat or the power supply held them back at any time: at most so many."""
    with connection.cursor() as cursor:
        cursor.execute(_THROTTLED, [list(instance_ids), midnight(since), midnight(until), HELD_BACK])
        return {(pk, day): seconds or 0.0 for pk, day, seconds in cursor.fetchall()}


def happenings_of(instance_ids: Sequence[int], *, since: date, until: date) -> dict[Place, list[Happening]]:
    found: dict[Place, list[Happening]] = defaultdict(list)
    for pk, one in _happenings(list(instance_ids), midnight(since), midnight(until)):
        found[pk, one.at.astimezone(UTC).date()].append(one)
    return found


def _happenings(ids: list[int], since: datetime, until: datetime) -> Iterator[tuple[int, Happening]]:
    span = (since, until - timedelta(microseconds=1))
    events = MachineEvent.objects.filter(instance__in=ids, at__range=span, kind__in=[*EVENT_KINDS, "xid"])
    for pk, at, kind, code in events.values_list("instance_id", "at", "kind", "code"):
        yield pk, Happening(at, _xid_kind(code) if kind == "xid" else EVENT_KINDS[kind])
    quiet = Alert.objects.filter(instance__in=ids, cause="machine.unreachable", opened_at__range=span)
    for instance_id, opened_at in quiet.values_list("instance_id", "opened_at"):
        if instance_id is not None:
            yield instance_id, Happening(opened_at, Kind.UNREACHABLE)
    failed = Operation.objects.filter(
        instance__in=ids,
        state=OperationState.FAILED,
        kind__in=(OperationKind.LAUNCH, OperationKind.START, OperationKind.REBOOT),
        failed_at__range=span,
    )
    for pk, failed_at in failed.values_list("instance_id", "failed_at"):
        if pk is not None and failed_at is not None:
            yield pk, Happening(failed_at, Kind.FAILED_START)
    tests = AcceptanceReport.objects.filter(instance__in=ids, at__range=span, verdict__in=list(VERDICT_KINDS))
    for pk, at, verdict in tests.values_list("instance_id", "at", "verdict"):
        yield pk, Happening(at, VERDICT_KINDS[verdict])


def _xid_kind(code: int | None) -> Kind:
    return Kind.PROGRAM_XID if code in APPLICATION_XIDS else Kind.XID
