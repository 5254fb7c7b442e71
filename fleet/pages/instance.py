from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from fleet import panels
from fleet.downloads import Table
from fleet.formats import bytes_text, duration_text, money_text, rate_text
from fleet.inventory.models import Instance
from fleet.inventory.operations.panel import acts_context
from fleet.pages.charts import DEFAULT_SPAN, MAX_POINTS, SHORT_SPAN, SPANS, Drawn, charts_and_note, draw_charts
from fleet.pages.downloads import bands_table, chart_file, chart_table
from fleet.pages.heat import draw_heat, machine_heat
from fleet.pages.history import Run, kept_history, runs, state_history
from fleet.pages.idle.machine import machine_idle
from fleet.pages.machine import MachineView, Tile
from fleet.pages.servingcharts import draw_serving
from fleet.pages.timeline import entries
from fleet.panels import Context
from fleet.states import GpuState
from fleet.teams.access import TeamRequest
from fleet.telemetry.latest import machines_now
from fleet.telemetry.machine_panel import serving_context
from fleet.telemetry.models import GpuLatest, HostLatest
from fleet.telemetry.words import resolution_words

BANDS = "states"
BAND_SPAN = timedelta(hours=24)
BAND_POINTS = 145
BAND_KEPT_SECONDS = 60
EVENTS_SHOWN = 20
# Sources that the page draws by themselves: states as bands, money as a panel. The whole timeline has them.
BESIDE_THE_TIMELINE = frozenset({"states", "money"})


def instance(request: TeamRequest, pk: int) -> HttpResponse:
    """One machine, live. What its provider ended stays readable here, by its address."""
    view = _view(request, pk)
    span = _span(request)
    charts, note = _charts(view, span)
    context = {
        "nav": "instances",
        "view": view,
        "span": span,
        "spans": [(name, f"{name[:-1]} {name[-1]}") for name in SPANS if name != SHORT_SPAN],
        "span_note": note,
        "charts": charts,
        "chart_json": {drawn.chart.name: drawn.as_json() for drawn in charts},
        "files_address": f"{reverse('instance_series', args=[request.team.slug, pk])}?span={span}",
        "panels": panels.machine_panels,
        "stats": _stats(view),
        "processes": _processes(view),
        "facts": _facts(view),
        **_past(request, view),
        **acts_context(request, view.instance, now=view.at),
    }
    return render(request, "pages/instance.html", context)


def instance_series(request: TeamRequest, pk: int) -> HttpResponse:
    """The figures of all charts over a span: the page asks when it changes the span and after a lost connection.

    `?format=csv|parquet&chart=<name>`: those of one chart as a file.
    """
    view, span = _view(request, pk), _span(request)
    name = slugify(view.instance.name) or str(pk)
    if (file := chart_file(request, partial(_tables, view, span), name=name, until=view.at)) is not None:
        return file
    charts, note = _charts(view, span)
    figures = {drawn.chart.name: drawn.as_json() for drawn in charts}
    return JsonResponse({"span": span, "note": note, "charts": figures})


def instance_heat(request: TeamRequest, pk: int) -> HttpResponse:
    """The machine's month, hour by hour; loaded after the page."""
    view = _view(request, pk)
    gpu_ids = [tile.gpu_id for tile in view.tiles if tile.gpu_id]
    heat = machine_heat(gpu_ids=gpu_ids, now=view.at, zone=timezone.get_current_timezone())
    return draw_heat(request, heat, nav="instances", note=_("all GPUs of the machine together"))


def instance_pulse(request: TeamRequest, pk: int) -> HttpResponse:
    """The parts of the page that samples alone do not move: the figures, the state, the bands and the timeline."""
    view = _view(request, pk)
    context = {"view": view, "stats": _stats(view), "processes": _processes(view), **_past(request, view)}
    context["serving"] = serving_context(request, view.instance)
    context["idle"] = machine_idle(request, view.instance)
    context |= acts_context(request, view.instance, now=view.at)
    return render(request, "pages/instance_pulse.html", context)


def _view(request: TeamRequest, pk: int) -> MachineView:
    found = get_object_or_404(
        Instance.objects.select_related("account", "owner", "project", "image"), pk=pk, team=request.team
    )
    now = timezone.now()
    return MachineView(machines_now([found], now=now)[0], now)


def _charts(view: MachineView, span: str) -> tuple[list[Drawn], str]:
    charts, note = charts_and_note(view, since=view.at - SPANS[span], until=view.at)
    return [*charts, *_serving(view, span)], note


def _serving(view: MachineView, span: str) -> list[Drawn]:
    return draw_serving(view.instance, since=view.at - SPANS[span], until=view.at, now=view.at, max_points=MAX_POINTS)


def _tables(view: MachineView, span: str, wanted: str) -> dict[str, Table]:
    """The bands are those of the page, whichever span the charts have."""
    if wanted == BANDS:
        since = view.at - BAND_SPAN
        history = state_history(machines=[view], since=since, until=view.at, max_points=BAND_POINTS)
        return {BANDS: bands_table(view, history)}
    drawn = [*draw_charts(view, since=view.at - SPANS[span], until=view.at), *_serving(view, span)]
    return {one.chart.name: chart_table(one) for one in drawn}


def _span(request: TeamRequest) -> str:
    span = request.GET.get("span", DEFAULT_SPAN)
    return span if span in SPANS else DEFAULT_SPAN


@dataclass(frozen=True, slots=True)
class Band:
    """One GPU's day as runs of states."""

    label: str
    runs: list[Run]


def _past(request: TeamRequest, view: MachineView) -> Context:
    since = view.at - BAND_SPAN
    history = kept_history(
        machines=[view], until=view.at, span=BAND_SPAN, max_points=BAND_POINTS, kept_seconds=BAND_KEPT_SECONDS
    )
    bands = [
        Band(f"GPU {tile.index}", runs(history, states))
        for tile, states in zip(view.tiles, history.states.values(), strict=True)
    ]
    return {
        "bands": bands,
        "bands_address": f"{reverse('instance_series', args=[request.team.slug, view.instance.pk])}?span=24h",
        "band_ticks": [(since + BAND_SPAN * part / 4) for part in range(5)],
        "bucket_minutes": max(1, round(history.bucket_seconds / 60)),
        "band_source": resolution_words(history.resolution),
        "entries": entries(
            request, view.instance, since=since, until=view.at, limit=EVENTS_SHOWN, without=BESIDE_THE_TIMELINE
        ),
        "band_states": [state for state in GpuState if any(run.state is state for band in bands for run in band.runs)],
    }


@dataclass(frozen=True, slots=True)
class Stat:
    """A figure of the panel under the head; `value` None = not known, with the reason in `note`."""

    name: str
    label: str
    value: str | None
    note: str
    read_at: datetime | None
    period: float
    unit: str = ""
    # Which readings renew it while the page is open: "gpu" or "host".
    source: str = ""


def _stats(view: MachineView) -> list[Stat]:
    gpu = [_busy_stat(view), _memory_stat(view)] if view.tiles else [_cpu_stat(view)]
    return [_price_stat(view), *gpu, *_host_stats(view)]


def _price_stat(view: MachineView) -> Stat:
    instance = view.instance
    if view.price is None:
        return Stat("price", _("Price"), None, _("its provider does not say"), None, 0)
    per_gpu = money_text(view.price / len(view.tiles), instance.currency) if view.tiles else ""
    note = _("%(money)s per GPU") % {"money": per_gpu} if per_gpu else ""
    if view.idle_price:
        note = _("%(money)s of it idle") % {"money": money_text(view.idle_price, instance.currency)}
    period = instance.account.poll_interval_seconds if instance.account.kind != "manual" else 0
    return Stat("price", _("Price"), view.price_text, note, instance.priced_at, period, _("/h"))


def _busy_stat(view: MachineView) -> Stat:
    busy = view.busy_percent
    value = None if busy is None else f"{busy}%"
    note = view.states_label if value else view.verdict_words
    return Stat("busy", _("GPUs busy"), value, note, view.gpu_read_at, view.period_seconds, source="gpu")


def _memory_stat(view: MachineView) -> Stat:
    latest = [tile.now.latest for tile in view.tiles if tile.memory_percent is not None and tile.now.latest]
    used = [row.memory_used_bytes for row in latest if row.memory_used_bytes is not None]
    value = bytes_text(sum(used) / len(used)) if used else None
    note = _("%(percent)d%% full, mean of %(n)d") % {"n": len(used), "percent": view.memory_percent or 0}
    note = note if used else ""
    return Stat("memory", _("GPU memory"), value, note, view.gpu_read_at, view.period_seconds, source="gpu")


def _cpu_stat(view: MachineView) -> Stat:
    host = view.host if isinstance(view.host, HostLatest) else None
    value = f"{host.cpu_percent:.0f}%" if host and host.cpu_percent is not None else None
    memory = bytes_text(host.memory_used_bytes) if host and host.memory_used_bytes else ""
    note = _("%(memory)s of memory used") % {"memory": memory} if memory else ""
    return Stat("cpu", _("Processor"), value, note, view.host_read_at, view.period_seconds, source="host")


def _host_stats(view: MachineView) -> list[Stat]:
    host = view.host
    pairs = (
        (
            "disk",
            _("Disk"),
            "disk_read_bytes_per_second",
            "disk_write_bytes_per_second",
            pgettext("disk", "read"),
            _("%s written"),
        ),
        (
            "net",
            _("Network"),
            "network_rx_bytes_per_second",
            "network_tx_bytes_per_second",
            pgettext("network", "in"),
            _("%s out"),
        ),
    )
    stats = []
    for name, label, main, other, unit, note in pairs:
        value = getattr(host, main, None)
        second = getattr(host, other, None)
        words = note % rate_text(second) if second is not None else ""
        text = None if value is None else rate_text(value)
        stats.append(Stat(name, label, text, words, view.host_read_at, view.period_seconds, f" {unit}", "host"))
    return stats


@dataclass(frozen=True, slots=True)
class Process:
    gpu: Tile
    pid: int | str
    name: str
    memory: str


def _processes(view: MachineView) -> list[Process]:
    """Processes on the GPUs as the agent saw them; names only where the agent could see the host's."""
    return [
        Process(
            tile,
            process.get("pid", ""),
            str(process.get("name") or ""),
            bytes_text(process["memory_bytes"]) if isinstance(process.get("memory_bytes"), int | float) else "",
        )
        for tile in view.tiles
        if isinstance(tile.now.latest, GpuLatest)
        for process in tile.now.latest.processes
        if isinstance(process, dict)
    ]


def _facts(view: MachineView) -> list[tuple[str, str]]:
    """What the provider and the team say of the machine; empty answers are left out."""
    row = view.instance
    up = view.at - row.started_at if row.started_at else None
    facts = (
        (_("Type"), row.instance_type),
        (_("GPUs"), view.gpus_label),
        (_("vCPUs"), str(row.vcpus or "")),
        (_("RAM"), bytes_text(row.ram_mib * 1024 * 1024) if row.ram_mib else ""),
        (_("Disk"), f"{row.disk_gb} GB" if row.disk_gb else ""),
        (_("Tenancy"), {True: _("exclusive"), False: _("shared")}.get(row.is_exclusive, "")),  # type: ignore[arg-type]
        (_("Project"), row.project.name if row.project else ""),
        (_("Owner"), row.owner.display_name if row.owner else ""),
        (_("Image"), row.image_name),
        (_("Up"), duration_text(up.total_seconds()) if up else ""),
        (_("Provider says"), row.raw_state),
        (_("Id"), row.external_id),
    )
    return [(label, text) for label, text in facts if text]
