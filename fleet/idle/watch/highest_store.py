"""Windows out of a distributed store, over the same interface that charts are read by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fleet.idle.watch.highest import GPU_READINGS, HOST_COUNTS, HOST_RATES, GpuHighest, HostHighest, Wanted
from fleet.telemetry.rollups.columns import FIVE_MINUTES, RAW
from fleet.telemetry.spans import Span
from fleet.telemetry.store.base import GPUS, HOSTS, Asked, Source, Statistic, Store
from fleet.telemetry.store.metrics import PREFIX
from fleet.telemetry.store.prometheus import bucketed, in_parts

_Figures = Mapping[int, Mapping[int, Sequence[float | None]]]
# Of each source the reading that every sample has, by which samples are counted.
_COUNTED = {GPUS.kind: (f"{PREFIX}_gpu_state", "gpu"), HOSTS.kind: (f"{PREFIX}_host_cpu_percent", "machine")}


@dataclass(slots=True)
class StoreReadings:
    store: Store

    def gpus(self, wanted: Wanted, *, now: datetime) -> dict[int, GpuHighest]:
        found: dict[int, GpuHighest] = {}
        for group in _by_beginning(wanted):
            span = _span(group.since, now)
            highest = self._of(GPUS, group, GPU_READINGS, "max", span)
            lowest = self._of(GPUS, group, ("utilization_percent",), "min", span)
            for pk, seconds in _covered(GPUS, group, span).items():
                least = _most(lowest.get(pk, {}), 1, smallest=True)
                found[pk] = GpuHighest(seconds, *least, *_most(highest.get(pk, {}), len(GPU_READINGS)))
        return found

    def hosts(self, wanted: Wanted, *, now: datetime) -> dict[int, HostHighest]:
        found: dict[int, HostHighest] = {}
        for group in _by_beginning(wanted):
            span = _span(group.since, now)
            rates = self._of(HOSTS, group, HOST_RATES, "p95", span)
            counts = self._of(HOSTS, group, HOST_COUNTS, "max", span)
            for pk, seconds in _covered(HOSTS, group, span).items():
                most = (*_most(rates.get(pk, {}), len(HOST_RATES)), *_most(counts.get(pk, {}), len(HOST_COUNTS)))
                found[pk] = HostHighest(seconds, *most)
        return found

    def _of(self, source: Source, group: _Group, names: Sequence[str], statistic: Statistic, span: Span) -> _Figures:
        found: dict[int, dict[int, Sequence[float | None]]] = defaultdict(dict)
        for pk, number, *figures in self.store.figures(Asked(source, list(group.paces), names, statistic), span):
            found[pk][number] = figures
        return found


@dataclass(slots=True)
class _Group:
    """Those whose windows begin together; `paces` by id."""

    since: datetime
    paces: dict[int, int] = field(default_factory=dict)


def _by_beginning(wanted: Wanted) -> Iterator[_Group]:
    groups: dict[datetime, _Group] = {}
    for pk, since, pace in zip(wanted.ids, wanted.sinces, wanted.paces, strict=True):
        groups.setdefault(since, _Group(since)).paces[pk] = pace
    return iter(groups.values())


def _span(since: datetime, now: datetime) -> Span:
    return Span(since, now, FIVE_MINUTES.seconds, RAW)


def _covered(source: Source, group: _Group, span: Span) -> dict[int, float]:
    """Seconds that samples stand for, no more than there are in each five minutes."""
    metric, label = _COUNTED[source.kind]
    counts: dict[tuple[int, int], float] = defaultdict(float)
    for ids in in_parts(list(group.paces)):
        either = "|".join(map(str, ids))
        for line, number, count in bucketed(f'count_over_time({metric}{{{label}=~"{either}"}}[{span.bucket}s])', span):
            # A state is a series of its own.
            counts[int(line.labels[label]), number] += count
    found: dict[int, float] = defaultdict(float)
    for (pk, _number), count in counts.items():
        found[pk] += min(float(span.bucket), count * group.paces[pk])
    return found


def _most(buckets: Mapping[int, Sequence[float | None]], width: int, *, smallest: bool = False) -> list[float | None]:
    choose = min if smallest else max
    columns = zip(*buckets.values(), strict=True) if buckets else [()] * width
    return [choose((value for value in column if value is not None), default=None) for column in columns]
