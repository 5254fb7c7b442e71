"""Rows for reports out of a Prometheus-compatible store: seconds in each state, mean utilization and power of each GPU.

Charts are computed by the store when they are asked for. What a fleet did by project and price is not: it joins readings with what only PostgreSQL knows, and must
not change when a machine does. So the same rollup tables are kept, with these few columns filled. The store is asked before each transaction, never within.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from fleet.inventory.models import GPU
from fleet.telemetry.models import Agent
from fleet.telemetry.pace import DEFAULT_INTERVAL_SECONDS, scrape_intervals
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR, ROLLUPS, Resolution
from fleet.telemetry.rollups.fleet import begin_fleet, make_groups, recount, step_fleet
from fleet.telemetry.rollups.models import LateBucket, RollupProgress
from fleet.telemetry.rollups.roll import GRACE, Rolled
from fleet.telemetry.rollups.statements import SAME_GROUP
from fleet.telemetry.spans import Span
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from fleet.telemetry.store.base import GPUS, Asked, Store

# GPUs a step: some forty questions to the store, and one transaction.
GPUS_AT_ONCE = 10_000
LATE_AT_ONCE = 500
MEANS = ("utilization_percent", "power_watts")

_INSERT = """
INSERT INTO {table} AS rolled (gpu_id, bucket_at, group_id, samples, coverage, {columns})
SELECT u.gpu_id, %(since)s, alike.id, round(u.covered / u.interval_seconds), least(1, u.covered / %(width)s), {values}
FROM unnest(%(gpu_ids)s::int8[], %(intervals)s::float8[], %(covered)s::float8[], {arrays}) AS u(gpu_id, interval_seconds, covered, {columns})
JOIN fleet_gpu gpu ON gpu.id = u.gpu_id JOIN fleet_instance machine ON machine.id = gpu.instance_id
LEFT JOIN rollup_group alike ON {same_group} ORDER BY u.gpu_id
ON CONFLICT (gpu_id, bucket_at) DO UPDATE SET {changes} WHERE EXCLUDED.samples >= rolled.samples
"""
_COLUMNS = (*SECONDS_COLUMNS.values(), *(f"{name}_avg" for name in MEANS))
Row = tuple[Any, ...]


def roll_up(store: Store, *, now: datetime, budget_seconds: float | None = None) -> Rolled:
    """Like PostgreSQL's own: forward, late samples again, the fleet counted together; stops between two steps once the budget is spent."""
    ends = None if budget_seconds is None else time.monotonic() + budget_seconds
    rolled = Rolled()
    _begin(now)
    for steps, late, fleet in _steps(store, now):
        rolled.steps += steps
        rolled.late += late
        rolled.fleet += fleet
        if ends is not None and time.monotonic() >= ends:
            break
    return rolled


def _begin(now: datetime) -> None:
    """What lies before the first run stays in the store alone."""
    for resolution in ROLLUPS:
        start = {"rolled_until": resolution.floor(now - resolution.width)}
        RollupProgress.objects.get_or_create(resolution=resolution.name, defaults=start)
    oldest = RollupProgress.objects.order_by("rolled_until").values_list("rolled_until", flat=True)[0]
    ensure_partitions(now=now, since=oldest)
    begin_fleet(now=now)


def _steps(store: Store, now: datetime) -> Iterator[tuple[int, int, int]]:
    for resolution in ROLLUPS:
        while _step_forward(store, resolution, now):
            yield 1, 0, 0
        while late := _roll_late(store, resolution):
            yield 0, late, 0
    # Last, as in rollups.roll.
    for resolution in ROLLUPS:
        while step_fleet(resolution):
            yield 0, 0, 1


def _step_forward(store: Store, resolution: Resolution, now: datetime) -> bool:
    progress = RollupProgress.objects.get(resolution=resolution.name)
    since = progress.rolled_until
    if since + resolution.width + GRACE > now:
        return False
    ids = list(
        GPU.objects.filter(pk__gte=progress.next_gpu_id).order_by("pk").values_list("pk", flat=True)[: GPUS_AT_ONCE + 1]
    )
    is_last = len(ids) <= GPUS_AT_ONCE
    reached = {"rolled_until": since + resolution.width, "next_gpu_id": 0} if is_last else {"next_gpu_id": ids[-1]}
    here = RollupProgress.objects.filter(
        resolution=resolution.name, rolled_until=since, next_gpu_id=progress.next_gpu_id
    )
    # Another worker may have done this step meanwhile: then its rows stand.
    return _write(
        resolution, since, _rows(store, resolution, since, ids[:GPUS_AT_ONCE]), lambda: here.update(**reached)
    )


def _roll_late(store: Store, resolution: Resolution) -> int:
    """The oldest late buckets that are behind us. Marks that come while the store is asked stay for the next time."""
    reached = RollupProgress.objects.get(resolution=resolution.name).rolled_until
    late = LateBucket.objects.filter(bucket_seconds=resolution.seconds, bucket_at__lt=reached)
    first = late.order_by("bucket_at").values_list("bucket_at", flat=True).first()
    if first is None:
        return 0
    marks = list(late.filter(bucket_at=first).values_list("pk", "instance_id")[:LATE_AT_ONCE])
    machines = sorted({instance_id for _, instance_id in marks})
    ids = list(GPU.objects.filter(instance_id__in=machines).order_by("pk").values_list("pk", flat=True))

    def settle() -> int:
        done, _ = LateBucket.objects.filter(pk__in=[pk for pk, _ in marks]).delete()
        if resolution == FIVE_MINUTES:
            hour = HOUR.floor(first)
            LateBucket.objects.bulk_create(
                LateBucket(instance_id=pk, bucket_at=hour, bucket_seconds=HOUR.seconds) for pk in machines
            )
        recount(resolution, [first], machines)
        return done

    _write(resolution, first, _rows(store, resolution, first, ids), settle)
    return len(marks)


def _rows(store: Store, resolution: Resolution, since: datetime, gpu_ids: Sequence[int]) -> list[Row]:
    """(GPU id, seconds between its samples, seconds that samples stand for, seconds in each state, means)"""
    span = Span(since, since + resolution.width, resolution.seconds, resolution)
    asked = Asked(GPUS, gpu_ids, MEANS, "mean")
    means = {pk: figures for pk, _number, *figures in store.figures(asked, span)} if gpu_ids else {}
    found: list[Row] = []
    for interval, ids in _by_interval(gpu_ids, since).items():
        for told in store.state_seconds(ids, span, interval_seconds=interval):
            pk, _number, *seconds = told
            covered = _covered(seconds)
            found.append((pk, float(interval), covered, *seconds, *means.get(pk, [None] * len(MEANS))))
    return sorted(found, key=lambda row: row[0])


def _covered(seconds: Sequence[float]) -> float:
    """The states that only samples tell. A sample of an unknown state counts as silence here: no figure of a report differs by it."""
    told = dict(zip(SECONDS_COLUMNS.values(), seconds, strict=True))
    return sum(value for name, value in told.items() if name not in {"unknown_seconds", "stopped_seconds"})


def _by_interval(gpu_ids: Sequence[int], since: datetime) -> Mapping[int, list[int]]:
    """An agent that said nothing since then does not set the pace of whatever else is read of its machine."""
    machines = dict(GPU.objects.filter(pk__in=gpu_ids).values_list("pk", "instance_id"))
    instance_ids = set(machines.values())
    agents = Agent.objects.filter(instance_id__in=instance_ids)
    spoke = agents.filter(batch_at__gte=since)
    paces = {
        **dict(agents.values_list("instance_id", "interval_seconds")),
        **scrape_intervals(instance_ids),
        **dict(spoke.values_list("instance_id", "interval_seconds")),
    }
    found: dict[int, list[int]] = {}
    for pk in gpu_ids:
        found.setdefault(paces.get(machines.get(pk, 0)) or DEFAULT_INTERVAL_SECONDS, []).append(pk)
    return found


def _write(resolution: Resolution, since: datetime, rows: Sequence[Row], settle: Callable[[], int]) -> bool:
    """In one transaction with `settle`, which says 0 where somebody else was faster: then nothing of it stays."""
    make_groups()
    with transaction.atomic():
        _insert(resolution, since, rows)
        done = settle()
        if not done:
            transaction.set_rollback(True)
    return bool(done)


def _insert(resolution: Resolution, since: datetime, rows: Sequence[Row]) -> None:
    if not rows:
        return
    gpu_ids, intervals, covered, *figures = ([*column] for column in zip(*rows, strict=True))
    statement = sql.SQL(_INSERT).format(
        table=sql.Identifier(f"gpu_rollup_{resolution.name}"),
        columns=_listed(_COLUMNS),
        values=sql.SQL(", ").join(sql.Identifier("u", name) for name in _COLUMNS),
        arrays=sql.SQL(", ").join(sql.SQL("{}::float8[]").format(sql.Placeholder(name)) for name in _COLUMNS),
        same_group=SAME_GROUP,
        changes=sql.SQL(", ").join(
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in ("samples", "coverage", *_COLUMNS)
        ),
    )
    parameters: dict[str, Any] = {
        "since": since,
        "width": float(resolution.seconds),
        "gpu_ids": gpu_ids,
        "intervals": intervals,
        "covered": covered,
        **dict(zip(_COLUMNS, figures, strict=True)),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _listed(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
