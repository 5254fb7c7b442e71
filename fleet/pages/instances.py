from __future__ import annotations

import json
from collections.abc import Mapping

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.progress import open_operations
from fleet.pages.export import machines_csv
from fleet.pages.fleet import Fleet, Group, fleet_of
from fleet.pages.listing import GROUPS, NUMERIC, PAGE_SIZE, Wanted, ordered, sections
from fleet.pages.machine import ORDER, MachineView
from fleet.panels import Context
from fleet.states import GpuState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role
from fleet.words import state_word

COLUMNS = ("name", "state", "gpus", "busy", "memory", "project", "price", "read")


def instances(request: TeamRequest) -> HttpResponse:
    """Every machine of the team, narrowed, sorted and grouped as the address says; a script's request gets the table alone."""
    wanted, fleet = Wanted.of(request.GET), fleet_of(request)
    acting = open_operations(request.team)
    found = _found(fleet, wanted, acting)
    context = {"nav": "instances", "fleet": fleet, "wanted": wanted, "acting": acting}
    context |= _table(request, fleet, found, wanted)
    if request.htmx and wanted.page > 1:
        return render(request, "pages/instances_rows.html", context)
    return render(request, "pages/instances_table.html" if request.htmx else "pages/instances.html", context)


def instances_csv(request: TeamRequest) -> HttpResponse:
    found = _found(fleet_of(request), Wanted.of(request.GET), open_operations(request.team))
    name = f"{request.team.slug}-instances-{timezone.localdate():%Y-%m-%d}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(machines_csv(found), content_type="text/csv; charset=utf-8", headers=headers)


def _found(fleet: Fleet, wanted: Wanted, acting: Mapping[int, Operation]) -> list[MachineView]:
    return ordered([view for view in fleet.machines if wanted.accepts(view, acting)], wanted)


def _table(request: TeamRequest, fleet: Fleet, found: list[MachineView], wanted: Wanted) -> Context:
    more = len(found) - wanted.page * PAGE_SIZE
    return {
        "found": Group(found),
        "running": sum(len(view.tiles) for view in found if view.state is not GpuState.STOPPED),
        "sections": sections(found, wanted),
        "chips": [(state, sum(state in view.counts for view in fleet.machines)) for state in ORDER],
        "providers": _providers(fleet),
        "groups": [(name, label) for name, (label, _of) in GROUPS.items()],
        "columns": {name: _column(request, name, wanted) for name in COLUMNS},
        "state_words": json.dumps({state.value: state_word(state) for state in ORDER}, ensure_ascii=False),
        "may_add": request.membership.can(Role.OPERATOR),
        "more": max(0, more),
        "next_query": _query(request, page=str(wanted.page + 1)),
        "csv_query": _query(request, page=""),
    }


def _providers(fleet: Fleet) -> list[tuple[str, str]]:
    labels = {view.instance.account.kind: view.provider for view in fleet.machines}
    return sorted(labels.items(), key=lambda item: item[1].lower())


def _column(request: TeamRequest, name: str, wanted: Wanted) -> dict[str, str]:
    """Where a heading leads: the same list by that column, figures largest first, a second time the other way."""
    active = wanted.sort == name
    descending = not wanted.descending if active else name in NUMERIC
    direction = ("descending" if wanted.descending else "ascending") if active else ""
    return {"query": _query(request, sort=f"-{name}" if descending else name, page=""), "direction": direction}


def _query(request: TeamRequest, **changes: str) -> str:
    """The present query with these changes; "" drops a parameter."""
    query = request.GET.copy()
    for name, value in changes.items():
        query.pop(name, None)
        if value:
            query[name] = value
    return f"?{query.urlencode()}" if query else "?"
