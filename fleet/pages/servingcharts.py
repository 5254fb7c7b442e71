"""The charts of a machine's serving endpoints: requests, tokens, load, latencies and cache over a span."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from fleet.formats import milliseconds_text, number_text
from fleet.inventory.models import Instance
from fleet.pages.chartlist import Chart, Line, percent_text
from fleet.pages.charts import Drawn, Trace
from fleet.telemetry.serving.listing import Endpoint, endpoints_of
from fleet.telemetry.serving.series import serving_series

# More lines than these say nothing any more; the panel lists every endpoint.
MOST_ENDPOINTS = 3


def per_second_text(value: float) -> str:
    return f"{number_text(value)}/s"


def _latency(name: str, title: Any, field: str) -> Chart:
    lines = (Line(f"{field}_seconds", _("mean")), Line(f"{field}_seconds_p95", _("p95"), "dot"))
    return Chart(name, title, lines, milliseconds_text, " ms", factor=1000, serving=True, optional=True)


SERVING_CHARTS = (
    Chart(
        "serving_requests",
        _("Serving: requests"),
        (
            Line("requests_per_second", _("finished")),
            Line("requests_failed_per_second", _("of them failed"), "dot"),
        ),
        per_second_text,
        "/s",
        serving=True,
        optional=True,
    ),
    Chart(
        "serving_tokens",
        _("Serving: tokens"),
        (
            Line("generation_tokens_per_second", _("generated")),
            Line("prompt_tokens_per_second", _("of prompts"), "dot"),
        ),
        per_second_text,
        "/s",
        serving=True,
        optional=True,
    ),
    Chart(
        "serving_load",
        _("Serving: requests at once"),
        (Line("requests_running", _("running")), Line("requests_waiting", _("waiting"), "dot")),
        number_text,
        "",
        serving=True,
        optional=True,
    ),
    _latency("serving_ttft", _("Serving: time to first token"), "ttft"),
    _latency("serving_tpot", _("Serving: time per output token"), "tpot"),
    Chart(
        "serving_cache",
        _("Serving: KV cache"),
        (Line("kv_cache_ratio", _("used")),),
        lambda value: percent_text(100 * value),
        "%",
        factor=100,
        top=100,
        serving=True,
        optional=True,
    ),
)


def draw_serving(
    instance: Instance, *, since: datetime, until: datetime, now: datetime, max_points: int
) -> list[Drawn]:
    """Every chart that has something to show; nothing for a machine without endpoints."""
    endpoints = endpoints_of(instance, now=now)[:MOST_ENDPOINTS]
    if not endpoints:
        return []
    fields = [name for chart in SERVING_CHARTS for name in chart.fields]
    ids = [one.latest.pk for one in endpoints]
    series = serving_series(endpoint_ids=ids, fields=fields, since=since, until=until, max_points=max_points)
    drawn = [
        Drawn(chart, _traces(chart, endpoints, series.values), series.starts, series.bucket_seconds, series.resolution)
        for chart in SERVING_CHARTS
    ]
    return [one for one in drawn if not one.empty]


def _traces(chart: Chart, endpoints: list[Endpoint], values: dict[int, dict[str, list[float | None]]]) -> list[Trace]:
    """The lines of one endpoint share its place, which is their tone."""
    return [
        Trace(
            line.field,
            _name(one, line, alone=len(endpoints) == 1),
            line.dash,
            None,
            place,
            values[one.latest.pk][line.field],
        )
        for place, one in enumerate(endpoints)
        for line in chart.lines
    ]


def _name(endpoint: Endpoint, line: Line, *, alone: bool) -> str:
    return str(line.name) if alone else f"{endpoint.label}, {line.name}"
