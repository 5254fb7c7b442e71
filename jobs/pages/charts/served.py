"""What a job's server told of its requests, and its memory, as rows of its chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta

from django.db.models import Avg, FloatField, Value
from django.db.models.functions import Cast, Extract, Floor
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.formats import bytes_text, milliseconds_text, number_text
from fleet.pages.chartlist import GIB, percent_text
from fleet.pages.servingcharts import per_second_text
from fleet.telemetry.series import Series
from fleet.telemetry.serving.series import serving_series
from jobs.book.models import Attempt
from jobs.book.serving import Serving
from jobs.pages.charts.rows import Line, Row, Window, broken
from jobs.serving.endpoint import endpoint_of, server_of
from jobs.serving.models import Probe, Server

MAX_POINTS = 400
# From here on latencies are said in seconds.
LONG_SECONDS = 10.0
Words = str | Promise


@dataclass(frozen=True, slots=True)
class Kind:
    """`lines`: fields of serving_series with their names and dashes."""

    name: str
    title: Words
    lines: tuple[tuple[str, Words, str], ...]
    text: Callable[[float], str]
    unit: str = ""
    factor: float = 1.0
    top: float | None = None


def _latency(name: str, title: Words) -> Kind:
    lines = ((f"{name}_seconds_p95", gettext_lazy("p95"), "solid"), (f"{name}_seconds", gettext_lazy("mean"), "dot"))
    return Kind(name, title, lines, latency_text, " ms", factor=1000)


def latency_text(seconds: float) -> str:
    """As "85 ms", and as "41.5 s" where milliseconds say nothing any more."""
    return milliseconds_text(seconds) if seconds < LONG_SECONDS else f"{number_text(seconds)} s"


KINDS = (
    Kind(
        "requests",
        gettext_lazy("Requests"),
        (
            ("requests_per_second", gettext_lazy("finished"), "solid"),
            ("requests_failed_per_second", gettext_lazy("of them failed"), "dot"),
        ),
        per_second_text,
        "/s",
    ),
    _latency("ttft", gettext_lazy("Time to first token")),
    _latency("tpot", gettext_lazy("Time per output token")),
    Kind(
        "queue",
        gettext_lazy("Requests at once"),
        (
            ("requests_waiting", gettext_lazy("waiting"), "solid"),
            ("requests_running", gettext_lazy("running"), "dot"),
        ),
        number_text,
    ),
    Kind(
        "kv_cache",
        gettext_lazy("KV cache"),
        (("kv_cache_ratio", gettext_lazy("used"), "solid"),),
        lambda ratio: percent_text(100 * ratio),
        "%",
        factor=100,
        top=100,
    ),
)


def served_rows(attempt: Attempt, window: Window) -> Iterator[Row]:
    """Nothing for a job that serves nothing."""
    serving, server = Serving.of(attempt.job.serving), server_of(attempt)
    if serving is None or server is None:
        return
    endpoint = endpoint_of(server, serving, attempt)
    if endpoint is not None:
        fields = [field for kind in KINDS for field, _name, _dash in kind.lines]
        series = serving_series(
            endpoint_ids=[endpoint.pk], fields=fields, since=window.start, until=window.end, max_points=MAX_POINTS
        )
        yield from _told(series, endpoint.pk)
    yield from _memory(server, window)


def _told(series: Series, endpoint_id: int) -> Iterator[Row]:
    source = _("told by the server")
    for kind in KINDS:
        lines = [
            Line(str(name), broken(points, series.bucket_seconds), dash)
            for field, name, dash in kind.lines
            if (points := _points(series, series.values[endpoint_id][field]))
        ]
        if lines:
            figure = ", ".join(f"{kind.text(_newest(line))} {line.name}" for line in lines)
            unit, factor = _scale(kind, lines)
            title = str(kind.title)
            yield Row(kind.name, title, lines, kind.text, source, unit, factor=factor, top=kind.top, figure=figure)


def _scale(kind: Kind, lines: Sequence[Line]) -> tuple[str, float]:
    """Unit and factor of the axis: of long latencies, seconds."""
    highest = max(value for line in lines for _at, value in line.points if value is not None)
    return (" s", 1.0) if kind.unit == " ms" and highest >= LONG_SECONDS else (kind.unit, kind.factor)


def _points(series: Series, values: Sequence[float | None]) -> list[tuple[float, float]]:
    half = timedelta(seconds=series.bucket_seconds / 2)
    pairs = zip(series.starts, values, strict=True)
    return [((start + half).timestamp(), value) for start, value in pairs if value is not None]


def _newest(line: Line) -> float:
    return next(value for _at, value in reversed(line.points) if value is not None)


def _memory(server: Server, window: Window) -> Iterator[Row]:
    seconds = Cast(Extract("at", "epoch", tzinfo=UTC), FloatField())
    rows = Probe.objects.filter(server=server, at__gte=window.start, at__lt=window.end, memory_bytes__isnull=False)
    read = (
        rows.annotate(bucket=Floor(seconds / Value(window.width_seconds)))
        .values("bucket")
        .annotate(mean=Avg("memory_bytes"))
        .order_by("bucket")
        .values_list("bucket", "mean")
    )
    points = [((float(bucket) + 0.5) * window.width_seconds, float(mean)) for bucket, mean in read]
    if points:
        line = Line(_("its processes"), broken(points, window.width_seconds))
        figure = bytes_text(points[-1][1])
        source = _("measured on its machines")
        yield Row(
            "server_memory",
            _("Memory of the server"),
            [line],
            bytes_text,
            source,
            " GiB",
            factor=1 / GIB,
            figure=figure,
        )
