"""The charts of a fleet's usage: their figures, the words above them, the table behind each and its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from fleet.downloads import Table
from fleet.formats import number_text
from fleet.pages.charts import SEVERAL_DAYS, TABLE_ROWS
from fleet.states import IDLE_MONEY, GpuState
from fleet.telemetry.histogram import percentile
from fleet.telemetry.usage import HOUR_SECONDS, Bucket, Line, Usage
from fleet.words import state_word

MEDIAN, HIGH = 0.5, 0.95
Buckets = Sequence[Bucket | None]
Figure = Callable[[Bucket], float | None]


def percent_text(value: float) -> str:
    """Percentiles are counted in whole percents."""
    return f"{value:.0f}%"


def kilowatts_text(watts: float) -> str:
    return f"{number_text(watts / 1000)} kW"


def percentile_of(share: float) -> Figure:
    return lambda bucket: percentile(bucket.counts, share)


def hours_in(state: GpuState) -> Figure:
    return lambda bucket: bucket.seconds.get(state, 0.0) / HOUR_SECONDS


def watts(bucket: Bucket) -> float | None:
    return bucket.watt_seconds / bucket.power_seconds if bucket.power_seconds else None


@dataclass(frozen=True, slots=True)
class Trace:
    """One line or layer. `column` names it in files, with its unit; `style` is for the page's script: a state, or nothing."""

    name: str
    column: str
    buckets: Buckets
    figure: Figure
    state: GpuState | None = None

    @property
    def values(self) -> list[float | None]:
        return [self.figure(bucket) if bucket else None for bucket in self.buckets]


@dataclass(frozen=True, slots=True)
class UsageChart:
    """`kind`: lines, areas or states. `factor` turns a figure into what the axis shows; `per_hour`: divided by the hours counted."""

    name: str
    kind: str
    title: str
    note: str
    traces: Sequence[Trace]
    usage: Usage
    text: Callable[[float], str]
    unit: str = ""
    factor: float = 1.0
    top: float | None = None
    per_hour: bool = False
    height: int = 226
    wide: bool = False

    @property
    def clock_style(self) -> str:
        several = len(self.usage.starts) * self.usage.bucket_seconds > SEVERAL_DAYS.total_seconds()
        return "m-d H:i" if several else "H:i"

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "start": self.usage.starts[0].timestamp(),
            "step": self.usage.bucket_seconds,
            "until": self.usage.rolled_until.timestamp() if self.usage.rolled_until else None,
            "unit": self.unit,
            "top": self.top,
            "traces": [
                {
                    "name": trace.name,
                    **({"state": trace.state.value} if trace.state else {}),
                    "y": [None if value is None else float(f"{value:.4g}") for value in self._drawn(trace)],
                }
                for trace in self.traces
            ],
        }

    def _drawn(self, trace: Trace) -> list[float | None]:
        covered = self.usage.covered_seconds()
        return [
            None
            if value is None
            else value * self.factor * (HOUR_SECONDS / seconds if self.per_hour and seconds else 1)
            for value, seconds in zip(trace.values, covered, strict=True)
        ]

    @property
    def table(self) -> list[tuple[datetime, list[str]]]:
        """A dozen even stretches, each figure made anew from all that lies in it; "" where nothing is known."""
        starts = self.usage.starts
        every = max(1, -(-len(starts) // TABLE_ROWS))
        return [
            (start, [self._cell(trace, number * every, every) for trace in self.traces])
            for number, start in enumerate(starts[::every])
        ]

    def _cell(self, trace: Trace, first: int, every: int) -> str:
        whole = merged(trace.buckets[first : first + every])
        value = trace.figure(whole) if whole else None
        return "" if value is None else self.text(value)

    @property
    def file(self) -> Table:
        notes = {"resolution": self.usage.resolution, "bucket_seconds": f"{self.usage.bucket_seconds:g}"}
        return Table(self.usage.starts, {trace.column: trace.values for trace in self.traces}, notes)


def merged(buckets: Buckets) -> Bucket | None:
    known = [bucket for bucket in buckets if bucket]
    if not known:
        return None
    whole = Bucket()
    for bucket in known:
        whole.add(bucket)
    return whole


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a split: its name, its GPU-hours, and its bar, in percent of the largest part's."""

    name: str
    line: Line
    total: Bucket
    bar: list[tuple[GpuState, str]] = field(default_factory=list)

    @property
    def hours_text(self) -> str:
        return number_text(sum(self.total.seconds.values()) / HOUR_SECONDS)

    @property
    def spoken(self) -> str:
        """The bar in words."""
        return ", ".join(
            f"{state_word(state)} {number_text(seconds / HOUR_SECONDS)}" for state, seconds in ordered(self.total)
        )


def ordered(bucket: Bucket) -> list[tuple[GpuState, float]]:
    return [(state, bucket.seconds[state]) for state in GpuState if bucket.seconds.get(state)]


def parts_of(usage: Usage, name_of: Callable[[str | None], str]) -> list[Part]:
    totals = [line.total() for line in usage.lines]
    widest = max((sum(total.seconds.values()) for total in totals), default=0.0) or 1.0
    return [
        Part(
            name_of(line.key),
            line,
            total,
            [(state, f"{100 * seconds / widest:.2f}") for state, seconds in ordered(total)],
        )
        for line, total in zip(usage.lines, totals, strict=True)
    ]


def whole_fleet(parts: Sequence[Part], count: int) -> list[Bucket | None]:
    """All parts together, bucket by bucket."""
    columns = [part.line.buckets for part in parts]
    return [beside([column[number] for column in columns]) for number in range(count)]


def beside(buckets: Buckets) -> Bucket | None:
    """Buckets of different GPUs and the same time as one."""
    known = [bucket for bucket in buckets if bucket]
    if not known:
        return None
    whole = Bucket(power_seconds=max(bucket.power_seconds for bucket in known))
    for bucket in known:
        whole.add_beside(bucket)
    return whole


def share_of(total: Bucket, states: frozenset[GpuState]) -> float | None:
    """Of all GPU-hours, in percent."""
    hours = sum(total.seconds.values())
    return 100 * sum(total.seconds.get(state, 0.0) for state in states) / hours if hours else None


def draw_usage(usage: Usage, parts: Sequence[Part], *, split: bool) -> list[UsageChart]:
    """The charts of the page in their order. A split has a line a part, and no percentiles of all together."""
    fleet = whole_fleet(parts, len(usage.starts))
    total = merged(fleet) or Bucket()
    utilization = _split_utilization(usage, parts) if split else [_utilization(usage, fleet, total)]
    return [*utilization, _hours(usage, fleet, total), _power(usage, parts, fleet, total, split=split)]


def _utilization(usage: Usage, fleet: Buckets, total: Bucket) -> UsageChart:
    middle = percentile(total.counts, MEDIAN)
    title = _("Utilization across GPUs")
    if middle is not None:
        title = _("Half of the GPU time ran at %(percent)s or less") % {"percent": percent_text(middle)}
    traces = (
        Trace(_("median"), "utilization_p50_percent", fleet, percentile_of(MEDIAN)),
        Trace(_("95th percentile"), "utilization_p95_percent", fleet, percentile_of(HIGH)),
    )
    return UsageChart(
        "utilization", "lines", title, percentile_words(usage), traces, usage, percent_text, "%", top=100, wide=True
    )


def _split_utilization(usage: Usage, parts: Sequence[Part]) -> list[UsageChart]:
    pairs = (
        ("utilization_p50", _("Median utilization"), MEDIAN),
        ("utilization_p95", _("95th percentile of utilization"), HIGH),
    )
    return [
        UsageChart(
            name,
            "lines",
            title,
            percentile_words(usage),
            [
                Trace(part.name, f"{part.name} {name}_percent", part.line.buckets, percentile_of(share))
                for part in parts
            ],
            usage,
            percent_text,
            "%",
            top=100,
        )
        for name, title, share in pairs
    ]


def percentile_words(usage: Usage) -> str:
    """What the percentiles are of."""
    if usage.resolution == "1h":
        return _("across GPUs, each counted once an hour with its mean")
    return _("across GPUs, each counted every 5 minutes with its mean")


def states_chart(usage: Usage, buckets: Buckets, *, name: str, title: str, note: str, height: int = 226) -> UsageChart:
    traces = [
        Trace(state_word(state), f"{state.value}_gpu_hours", buckets, hours_in(state), state)
        for state in GpuState
        if any(bucket and bucket.seconds.get(state) for bucket in buckets)
    ]
    return UsageChart(name, "states", title, note, traces, usage, number_text, per_hour=True, height=height)


def _hours(usage: Usage, fleet: Buckets, total: Bucket) -> UsageChart:
    worked, idle = share_of(total, frozenset({GpuState.WORKING})), share_of(total, IDLE_MONEY)
    title = _("GPU-hours by state")
    if worked is not None and idle is not None:
        title = _("%(worked)d%% of the GPU-hours worked, %(idle)d%% were idle") % {"worked": worked, "idle": idle}
    note = _("GPUs by state, stacked; the area is %(hours)s GPU-hours") % {
        "hours": number_text(sum(total.seconds.values()) / HOUR_SECONDS)
    }
    return states_chart(usage, fleet, name="hours", title=title, note=note)


def _power(usage: Usage, parts: Sequence[Part], fleet: Buckets, total: Bucket, *, split: bool) -> UsageChart:
    mean = watts(total)
    title = _("Power")
    if mean is not None:
        title = _("%(power)s on average") % {"power": kilowatts_text(mean)}
    traces = [Trace(_("power"), "power_watts", fleet, watts)]
    if split:
        traces = [Trace(part.name, f"{part.name} power_watts", part.line.buckets, watts) for part in parts]
    note = _("drawn by all GPUs that tell it, together")
    kind = "areas" if split else "lines"
    return UsageChart("power", kind, title, note, traces, usage, kilowatts_text, " kW", factor=0.001)
