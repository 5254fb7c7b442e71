"""Which state each GPU was in over a span, in even buckets.

Short spans: raw samples, judged by the same rules as now. Longer ones: the state that took most of the bucket, by the seconds that
rollups keep; each sample was judged by the same rules when it came.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from django.core.cache import cache
from django.db.models import QuerySet
from django.utils import timezone

from fleet.inventory.models import Instance, Observation
from fleet.pages.machine import MachineView
from fleet.providers.base import InstanceState
from fleet.states import Evidence, GpuState, classify
from fleet.telemetry.rollups.columns import RAW
from fleet.telemetry.series import Series, gpu_series, host_series
from fleet.telemetry.spans import choose_resolution
from fleet.telemetry.state_series import StateSeries, state_series
from fleet.telemetry.store.base import StoreError

logger = logging.getLogger(__name__)

GPU_FIELDS = (
    "utilization_percent",
    "sm_activity",
    "power_watts",
    "power_limit_watts",
    "memory_used_bytes",
    "process_count",
)
HOST_FIELDS = ("cpu_iowait_percent", "pressure_io_percent")
OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})


@dataclass(frozen=True, slots=True)
class History:
    """`states`: one list a GPU, one state a bucket; None while the machine was not known yet. Keys: (instance id, position of the GPU in its machine)."""

    starts: list[datetime]
    bucket_seconds: float
    states: dict[tuple[int, int], list[GpuState | None]]
    resolution: str = RAW.name

    def counts(self) -> list[Counter[GpuState]]:
        """How many GPUs were in each state, a bucket at a time."""
        columns = zip(*self.states.values(), strict=True) if self.states else ([] for _start in self.starts)
        return [Counter(state for state in column if state) for column in columns]


def kept_history(
    *, machines: Sequence[MachineView], until: datetime, span: timedelta, max_points: int, kept_seconds: int
) -> History:
    """state_history over the span before `until`, read anew only when the last reading is so old: open pages ask again and again."""
    shape = ",".join(f"{view.instance.pk}:{len(view.tiles)}" for view in machines)
    key = f"history:{sha256(shape.encode()).hexdigest()}:{span.total_seconds():g}:{max_points}"
    kept: History | None = cache.get(key)
    if kept is None:
        try:
            kept = state_history(machines=machines, since=until - span, until=until, max_points=max_points)
        except StoreError:
            logger.exception("States of the past cannot be read")
            return _nothing_known(machines, until=until, span=span)
        cache.set(key, kept, kept_seconds)
    return kept


def _nothing_known(machines: Sequence[MachineView], *, until: datetime, span: timedelta) -> History:
    gpus = [(view.instance.pk, position) for view in machines for position in range(len(view.tiles))]
    return History([until - span], span.total_seconds(), {gpu: [None] for gpu in gpus})


def state_history(*, machines: Sequence[MachineView], since: datetime, until: datetime, max_points: int) -> History:
    """A constant number of queries, however many machines."""
    owners = sum(len(view.tiles) for view in machines)
    if choose_resolution(since=since, until=until, now=timezone.now(), owners=owners) == RAW:
        return _from_samples(machines, since=since, until=until, max_points=max_points)
    return _from_seconds(machines, since=since, until=until, max_points=max_points)


def _from_seconds(machines: Sequence[MachineView], *, since: datetime, until: datetime, max_points: int) -> History:
    gpu_ids = [tile.gpu_id for view in machines for tile in view.tiles if tile.gpu_id]
    series = state_series(gpu_ids=gpu_ids, since=since, until=until, max_points=max_points)
    power = power_log([view.instance.pk for view in machines], since=since, until=until)
    states = {
        (view.instance.pk, position): _mostly(view.instance, tile.gpu_id, series, power.get(view.instance.pk))
        for view in machines
        for position, tile in enumerate(view.tiles)
    }
    return History(series.starts, series.bucket_seconds, states, series.resolution)


def _mostly(instance: Instance, gpu_id: int | None, series: StateSeries, log: PowerLog | None) -> list[GpuState | None]:
    width = timedelta(seconds=series.bucket_seconds)
    columns = series.seconds.get(gpu_id or 0) or [None] * len(series.starts)
    return [
        max(seconds, key=lambda state: seconds[state])
        if seconds
        else _judge_bucket(instance, start, start + width, {}, log)
        for start, seconds in zip(series.starts, columns, strict=True)
    ]


def _from_samples(machines: Sequence[MachineView], *, since: datetime, until: datetime, max_points: int) -> History:
    gpu_ids = [tile.gpu_id for view in machines for tile in view.tiles if tile.gpu_id]
    instance_ids = [view.instance.pk for view in machines]
    span = {"since": since, "until": until, "max_points": max_points}
    gpus = gpu_series(gpu_ids=gpu_ids, fields=GPU_FIELDS, **span)  # type: ignore[arg-type]
    hosts = host_series(instance_ids=instance_ids, fields=HOST_FIELDS, **span)  # type: ignore[arg-type]
    power = power_log(instance_ids, since=since, until=until)
    states = {
        (view.instance.pk, position): _judge(view.instance, tile.gpu_id, gpus, hosts, power.get(view.instance.pk))
        for view in machines
        for position, tile in enumerate(view.tiles)
    }
    return History(gpus.starts, gpus.bucket_seconds, states)


def _judge(
    instance: Instance, gpu_id: int | None, gpus: Series, hosts: Series, log: PowerLog | None
) -> list[GpuState | None]:
    readings = gpus.values.get(gpu_id or 0, {})
    waits = hosts.values.get(instance.pk, {})
    judged: list[GpuState | None] = []
    began = False
    for number, start in enumerate(gpus.starts):
        end = start + timedelta(seconds=gpus.bucket_seconds)
        values = {name: column[number] for name, column in readings.items()}
        # Hosts may be read at another interval, and then lie on a grid of their own.
        other = min(int((start - hosts.starts[0]).total_seconds() // hosts.bucket_seconds), len(hosts.starts) - 1)
        values |= {name: column[max(other, 0)] for name, column in waits.items()}
        # An agent may have sent what it gathered before the provider's first listing.
        began = began or end > instance.first_seen_at or values.get("utilization_percent") is not None
        judged.append(_judge_bucket(instance, start, end, values, log) if began else None)
    return judged


def _judge_bucket(
    instance: Instance, start: datetime, end: datetime, values: dict[str, float | None], log: PowerLog | None
) -> GpuState:
    seen = values.get("utilization_percent") is not None
    powered = log.powered_at(start) if log and not seen else None
    if powered is None and not seen and instance.state in OFF and instance.state_since <= start:
        powered = False
    evidence = Evidence(now=end, powered=powered, sampled_at=end if seen else None, **values)  # type: ignore[arg-type]
    return classify(evidence).state


@dataclass(frozen=True, slots=True)
class PowerLog:
    """When one machine was on, as its provider's listings showed it; `moments` ascend."""

    moments: list[datetime]
    powered: list[bool | None]

    def powered_at(self, moment: datetime) -> bool | None:
        position = bisect_right(self.moments, moment) - 1
        return self.powered[position] if position >= 0 else None


def power_log(instance_ids: Sequence[int], *, since: datetime, until: datetime) -> dict[int, PowerLog]:
    """One log a machine: the last observation before the span, then those within it."""
    rows = Observation.objects.filter(instance_id__in=instance_ids)
    before = rows.filter(seen_at__lte=since).order_by("instance_id", "-seen_at").distinct("instance_id")
    within = rows.filter(seen_at__gt=since, seen_at__lt=until).order_by("seen_at")
    logs: dict[int, PowerLog] = {}
    for instance_id, seen_at, state in [*_plain(before), *_plain(within)]:
        log = logs.setdefault(instance_id, PowerLog([], []))
        log.moments.append(seen_at)
        log.powered.append(_powered(state))
    return logs


def _plain(rows: QuerySet[Observation]) -> Iterable[tuple[int, datetime, str]]:
    return rows.values_list("instance_id", "seen_at", "state")


def _powered(state: str) -> bool | None:
    if state in OFF:
        return False
    return True if state == InstanceState.RUNNING else None


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of one state, as a share of the whole span in percent."""

    state: GpuState | None
    start: datetime
    end: datetime
    percent: float


def runs(history: History, states: list[GpuState | None]) -> list[Run]:
    """Neighbouring buckets of one state put together, for drawing as a band."""
    found: list[Run] = []
    width = 100 / max(len(states), 1)
    for start, state in zip(history.starts, states, strict=True):
        end = start + timedelta(seconds=history.bucket_seconds)
        if found and found[-1].state is state:
            last = found[-1]
            found[-1] = Run(state, last.start, end, last.percent + width)
        else:
            found.append(Run(state, start, end, width))
    return found
