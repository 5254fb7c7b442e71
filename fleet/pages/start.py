"""A fresh installation: this machine reports, nothing is rented yet, three steps lead to one's own figures."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet import panels
from fleet.formats import bytes_text
from fleet.inventory.models import EnvironmentReport
from fleet.inventory.reach import reach_problem
from fleet.pages.charts import SHORT_SPAN, SPANS, charts_and_note
from fleet.pages.fleet import Fleet
from fleet.pages.machine import MachineView
from fleet.panels import Context
from fleet.providers.registry import adapters
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.models import HostLatest

HOST_CHARTS = ("cpu", "host_memory", "disk_bandwidth", "network")
TOKEN_LIFETIME = timedelta(hours=1)
# Providers that only this installation itself has an account with.
OWN_KINDS = frozenset({"manual", "sandbox"})


def is_first_run(fleet: Fleet) -> bool:
    """Nothing that could cost money is known: no provider polled, no GPU, no price."""
    return not fleet.team.is_sandbox and not any(
        view.tiles or view.price or view.instance.account.kind != "manual" for view in fleet.machines
    )


def this_machine(fleet: Fleet) -> MachineView | None:
    """The machine that Rackrent itself runs on, by its host name; else the first one that reports."""
    reporting = [view for view in fleet.machines if view.agent and view.heard_at]
    here = socket.gethostname()
    own = (view for view in reporting if view.agent and view.agent.hostname == here)
    return next(own, reporting[0] if reporting else None)


def start_context(fleet: Fleet) -> Context:
    view = this_machine(fleet)
    providers = [_(adapter.label) for kind, adapter in adapters().items() if kind not in OWN_KINDS]
    tab = panels.settings_tabs.entries.get("providers")
    steps: Context = {"providers": providers, "providers_url": tab.url_name if tab else ""}
    return steps if view is None else {**steps, "view": view, **_own_charts(view), "environment": _environment(view)}


def _own_charts(view: MachineView) -> Context:
    drawn, _note = charts_and_note(view, since=view.at - SPANS[SHORT_SPAN], until=view.at)
    by_name = {one.chart.name: one for one in drawn}
    charts = [by_name[name] for name in HOST_CHARTS if name in by_name]
    return {"charts": charts, "span": SHORT_SPAN, "chart_json": {one.chart.name: one.as_json() for one in charts}}


def _environment(view: MachineView) -> dict[str, Any]:
    report = EnvironmentReport.objects.filter(instance=view.instance).order_by("-reported_at").first()
    host = HostLatest.objects.filter(instance=view.instance).first()
    disk = ""
    if host and host.filesystem_used_bytes and host.filesystem_total_bytes:
        disk = f"{bytes_text(host.filesystem_used_bytes)} / {bytes_text(host.filesystem_total_bytes)}"
    return {**(report.data if report else {}), "disk": disk}


@require_POST
@requires(Role.OPERATOR)
def install_line(request: TeamRequest) -> HttpResponse:
    """A one-line command with a fresh enrolment token for one machine; the token is shown this once."""
    token, secret = create_enrolment_token(actor=Actor.of_page(request), team=request.team, lifetime=TOKEN_LIFETIME)
    base = settings.PUBLIC_URL or request.build_absolute_uri("/").rstrip("/")
    context = {
        "command": f"curl -fsSL {base}/agent/install.sh | sh -s -- --token {secret.secret}",
        "token": token,
        "problem": reach_problem(settings.PUBLIC_URL),
    }
    return render(request, "components/install_line.html" if request.htmx else "pages/install_line.html", context)
