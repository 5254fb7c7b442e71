"""The live charts of one machine: their figures for a span, and the table behind each.

Figures go to the browser as plain numbers on an even grid; the page's script draws them and appends what arrives live.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from fleet.formats import rate_unit
from fleet.pages.chartlist import CHARTS, Chart
from fleet.pages.machine import MachineView
from fleet.telemetry.series import Series, gpu_series, host_series, resolution_read
from fleet.telemetry.store.base import StoreError
from fleet.telemetry.words import resolution_words

logger = logging.getLogger(__name__)

# The first page shows a machine that has just begun to report.
SHORT_SPAN = "15m"
SPANS = {
    SHORT_SPAN: timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
# Where times of the day alone would repeat themselves.
SEVERAL_DAYS = timedelta(hours=26)
# Longer buckets than this tell nothing of the present, unless they are the last.
PRESENT_SECONDS = 60.0
DEFAULT_SPAN = "1h"
MAX_POINTS = 600
TABLE_ROWS = 12
# One late reading is no gap; the page's script draws the same.
GAP_BUCKETS = 1.5
# More than so many figures are no heading; the table has them.
MOST_FIGURES = 2
Column = list[float | None]


@dataclass(frozen=True, slots=True)
class Trace:
    """One line with its figures: `gpu` is a GPU's id, None for the machine itself."""

    field: str
    name: str
    dash: str
    gpu: int | None
    index: int
    values: Column


@dataclass(frozen=True, slots=True)
class Drawn:
    """One chart with its figures over a span."""

    chart: Chart
    traces: list[Trace]
    starts: list[datetime]
    bucket_seconds: float
    resolution: str

    @property
    def clock_style(self) -> str:
        several = len(self.starts) * self.bucket_seconds > SEVERAL_DAYS.total_seconds()
        return "m-d H:i" if several else "H:i"

    @property
    def empty(self) -> bool:
        return not any(value is not None for trace in self.traces for value in trace.values)

    @property
    def gaps(self) -> list[tuple[datetime, datetime]]:
        """Stretches in which no line of the chart has a reading."""
        known = [any(column) for column in zip(*([v is not None for v in t.values] for t in self.traces), strict=True)]
        found = stretches(self.starts, self.bucket_seconds, known)
        return [
            (start, end) for start, end in found if (end - start).total_seconds() > GAP_BUCKETS * self.bucket_seconds
        ]

    @property
    def figure(self) -> str:
        """The newest reading: the mean of the GPUs, or each reading of the machine with its name."""
        newest = [(trace, value) for trace in self.traces if (value := self._newest(trace)) is not None]
        if not newest:
            return ""
        if self.chart.per_gpu:
            return self.chart.text(sum(value for _trace, value in newest) / len(newest))
        if len(self.traces) == 1:
            return self.chart.text(newest[0][1])
        if len(self.traces) > MOST_FIGURES:
            return ""
        return ", ".join(f"{self.chart.text(value)} {trace.name}" for trace, value in newest)

    def _newest(self, trace: Trace) -> float | None:
        """Of the last three buckets, of long ones the last: an older reading is no present figure."""
        newest = trace.values[-3:] if self.bucket_seconds <= PRESENT_SECONDS else trace.values[-1:]
        return next((value for value in reversed(newest) if value is not None), None)

    @property
    def scale(self) -> tuple[str, float]:
        """Unit and factor of the axis."""
        if self.chart.measure != "rate":
            return self.chart.unit, self.chart.factor
        highest = max((value for trace in self.traces for value in trace.values if value is not None), default=0.0)
        unit, factor = rate_unit(highest)
        return f" {unit}", factor

    def as_json(self) -> dict[str, Any]:
        chart, (unit, factor) = self.chart, self.scale
        return {
            "kind": "lines",
            "start": self.starts[0].timestamp(),
            "step": self.bucket_seconds,
            "unit": unit,
            "factor": factor,
            "measure": chart.measure,
            "top": chart.top,
            "traces": [
                {
                    "field": trace.field,
                    "name": trace.name,
                    "dash": trace.dash,
                    "gpu": trace.gpu,
                    "index": trace.index,
                    "y": [None if value is None else _short(value * factor) for value in trace.values],
                }
                for trace in self.traces
            ],
        }

    @property
    def table(self) -> list[tuple[datetime, list[str]]]:
        """Means over a dozen even stretches; "" where nothing was read."""
        every = max(1, -(-len(self.starts) // TABLE_ROWS))
        return [
            (start, [self._cell(trace.values[number * every : (number + 1) * every]) for trace in self.traces])
            for number, start in enumerate(self.starts[::every])
        ]

    def _cell(self, values: Column) -> str:
        known = [value for value in values if value is not None]
        return self.chart.text(sum(known) / len(known)) if known else ""


def _short(value: float) -> float:
    """Four significant digits: what a chart can show, at a third of the bytes."""
    return float(f"{value:.4g}")


def stretches(
    starts: Sequence[datetime], bucket_seconds: float, known: Sequence[bool]
) -> list[tuple[datetime, datetime]]:
    """[start, end) of every run of buckets that are not known."""
    width, found = timedelta(seconds=bucket_seconds), list[tuple[datetime, datetime]]()
    for start, is_known in zip(starts, known, strict=True):
        if is_known:
            continue
        joined = found and found[-1][1] == start
        found = [*found[:-1], (found[-1][0], start + width)] if joined else [*found, (start, start + width)]
    return found


def draw_charts(view: MachineView, *, since: datetime, until: datetime) -> list[Drawn]:
    """Every chart of the machine that has something to show; a machine without GPUs has none of theirs. Raises StoreError."""
    span: dict[str, Any] = {"since": since, "until": until, "max_points": MAX_POINTS}
    known = [tile for tile in view.tiles if tile.gpu_id]
    gpu_fields = [name for chart in CHARTS if chart.per_gpu for name in chart.fields]
    host_fields = [name for chart in CHARTS if not chart.per_gpu for name in chart.fields]
    gpus = gpu_series(gpu_ids=[tile.gpu_id for tile in known if tile.gpu_id], fields=gpu_fields, **span)
    host = host_series(instance_ids=[view.instance.pk], fields=host_fields, **span)
    drawn = [_draw_gpus(chart, view, gpus) if chart.per_gpu else _draw_host(chart, view, host) for chart in CHARTS]
    return [one for one in drawn if one.traces and not (one.chart.optional and one.empty)]


def charts_and_note(view: MachineView, *, since: datetime, until: datetime) -> tuple[list[Drawn], str]:
    """The charts, and what they are made of; none of them, and why, while the store of readings is away: the rest of the page needs it not."""
    try:
        return draw_charts(view, since=since, until=until), span_note(since=since, until=until)
    except StoreError:
        logger.exception("Charts cannot be drawn")
        return [], _("the store of readings cannot be reached just now")


def span_note(*, since: datetime, until: datetime) -> str:
    """What the charts of this span are made of."""
    return resolution_words(resolution_read(since=since, until=until, now=until))


def _draw_gpus(chart: Chart, view: MachineView, series: Series) -> Drawn:
    traces = [
        Trace(line.field, f"GPU {tile.index}", "solid", tile.gpu_id, tile.index, series.values[tile.gpu_id][line.field])
        for tile in view.tiles
        if tile.gpu_id
        for line in chart.lines
    ]
    return Drawn(chart, traces, series.starts, series.bucket_seconds, series.resolution)


def _draw_host(chart: Chart, view: MachineView, series: Series) -> Drawn:
    columns = series.values[view.instance.pk]
    traces = [
        Trace(line.field, str(line.name), line.dash, None, number, columns[line.field])
        for number, line in enumerate(chart.lines)
    ]
    return Drawn(chart, traces, series.starts, series.bucket_seconds, series.resolution)
