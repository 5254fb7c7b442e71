"""Readings in a Prometheus-compatible store: every span is computed from samples, by PromQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from fleet.telemetry.rollups.columns import BITS, PERCENTILE, RAW, Resolution
from fleet.telemetry.rollups.roll import Rolled
from fleet.telemetry.spans import Span
from fleet.telemetry.store.base import TOGETHER, Asked
from fleet.telemetry.store.metrics import BIT, PREFIX
from fleet.telemetry.store.prometheus_rollups import roll_up
from fleet.telemetry.store.prometheus_states import state_seconds
from fleet.telemetry.store.prometheus_writer import PrometheusWriter
from fleet.telemetry.store.target import Line, query_range

# Ids in one question: VictoriaMetrics takes queries of 16 KiB.
IDS_AT_ONCE = 500
# Buckets lie on the epoch's grid and end before the next begins; samples have milliseconds.
LAST_MOMENT = 0.001
# VictoriaMetrics repeats the last but one value over the newest minute of a range, unless the range ends beyond now.
NEWEST_SECONDS = 120.0
_FUNCTIONS = {
    "mean": "avg_over_time({})",
    "min": "min_over_time({})",
    "max": "max_over_time({})",
    "p95": f"quantile_over_time({PERCENTILE}, {{}})",
}
_Cell = tuple[int, int, str]


class PrometheusStore:
    def sample_writer(self) -> PrometheusWriter:
        return PrometheusWriter()

    def figures(self, asked: Asked, span: Span) -> Iterable[tuple[Any, ...]]:
        plain = [name for name in asked.fields if name != BITS]
        cells: dict[_Cell, float] = {}
        if BITS in asked.fields:
            _add_bits(asked, span, cells)
        if plain and asked.together and asked.statistic == "mean":
            cells |= _common_means(asked, plain, span)
        elif plain:
            _add_figures(asked, plain, span, cells)
        keys = sorted({(pk, number) for pk, number, _ in cells})
        return [(pk, number, *(cells.get((pk, number, name)) for name in asked.fields)) for pk, number in keys]

    def state_seconds(self, gpu_ids: Sequence[int], span: Span, *, interval_seconds: int) -> Iterable[tuple[Any, ...]]:
        counts: dict[tuple[int, int], dict[str, float]] = {}
        for ids in in_parts(gpu_ids):
            query = f'count_over_time({PREFIX}_gpu_state{{gpu=~"{_either(ids)}"}}[{span.bucket}s])'
            for line, number, value in bucketed(query, span):
                counts.setdefault((int(line.labels["gpu"]), number), {})[line.labels["state"]] = value
        return state_seconds(gpu_ids, span, counts, interval_seconds=interval_seconds, now=timezone.now())

    def reads(self, resolution: Resolution) -> Resolution:
        return RAW

    def roll_up(self, *, now: datetime, budget_seconds: float | None = None) -> Rolled:
        return roll_up(self, now=now, budget_seconds=budget_seconds)


def in_parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))


def _either(words: Iterable[Any]) -> str:
    return "|".join(map(str, words))


def bucketed(query: str, span: Span) -> Iterator[tuple[Line, int, float]]:
    """(series, number of the bucket, value). `query` looks back one bucket, and is asked at the last moment of each."""
    start = (span.first + 1) * span.bucket - LAST_MOMENT
    end = last = start + (span.count - 1) * span.bucket
    now = timezone.now().timestamp()
    if last > now - NEWEST_SECONDS - span.bucket:
        end = max(last, now) + NEWEST_SECONDS + 2 * span.bucket
    for line in query_range(query, start=start, end=end, step=span.bucket):
        for moment, value in line.points:
            if moment <= last + LAST_MOMENT:
                yield line, round((moment + LAST_MOMENT) / span.bucket) - 1, value


def _add_figures(asked: Asked, names: Sequence[str], span: Span, cells: dict[_Cell, float]) -> None:
    """Several parts of ids that are asked for together are joined here."""
    join = min if asked.statistic == "min" else max
    for ids in in_parts(asked.ids):
        query = _FUNCTIONS[asked.statistic].format(_window(asked, names, ids, span))
        if asked.together:
            query = f"{join.__name__} by (reading) ({query})"
        for line, number, value in bucketed(query, span):
            cell = (_id_of(asked, line), number, line.labels["reading"])
            cells[cell] = join(value, cells.get(cell, value))


def _common_means(asked: Asked, names: Sequence[str], span: Span) -> dict[_Cell, float]:
    """Every sample weighs the same, whichever GPU it is of."""
    sums, counts = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for ids in in_parts(asked.ids):
        window = _window(asked, names, ids, span)
        for function, found in (("sum_over_time", sums), ("count_over_time", counts)):
            for line, number, value in bucketed(f"sum by (reading) ({function}({window}))", span):
                found[number, line.labels["reading"]] += value  # type: ignore[assignment]
    return {(TOGETHER, *key): sums[key] / count for key, count in counts.items()}


def _add_bits(asked: Asked, span: Span, cells: dict[_Cell, float]) -> None:
    for ids in in_parts(asked.ids):
        window = _window(asked, [BITS, BIT], ids, span)
        for line, number, _count in bucketed(f"count_over_time({window})", span):
            cell = (_id_of(asked, line), number, BITS)
            bit = 1 << int(line.labels["bit"]) if "bit" in line.labels else 0
            cells[cell] = float(int(cells.get(cell, 0.0)) | bit)


def _window(asked: Asked, names: Sequence[str], ids: Sequence[int], span: Span) -> str:
    kind = asked.source.kind
    matchers = f'__name__=~"{PREFIX}_{kind}_({_either(names)})",{_id_label(asked)}=~"{_either(ids)}"'
    return f"{{{matchers}}}[{span.bucket}s]"


def _id_label(asked: Asked) -> str:
    return "gpu" if asked.source.kind == "gpu" else "machine"


def _id_of(asked: Asked, line: Line) -> int:
    return TOGETHER if asked.together else int(line.labels[_id_label(asked)])
