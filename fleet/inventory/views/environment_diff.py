"""The software of two machines side by side: why does it run there and not here?"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from fleet.inventory.environments.diff import rows_of
from fleet.inventory.environments.places import machines_of
from fleet.inventory.environments.sources import newest_report, versions_of_machine
from fleet.inventory.environments.verdicts import verdict_of_machine
from fleet.inventory.environments.words import label
from fleet.inventory.models import Instance
from fleet.teams.access import TeamRequest


@require_safe
def environment_diff(request: TeamRequest) -> HttpResponse:
    machines = machines_of(request.team)
    left, right = (machine_named(machines, request.GET.get(name, "")) for name in ("left", "right"))
    context: dict[str, Any] = {"nav": "images", "machines": machines, "left": left, "right": right}
    if left and right:
        rows = rows_of(versions_of_machine(left), versions_of_machine(right))
        context |= {
            "rows": [(label(row.name), row) for row in rows],
            "mattering": [label(row.name) for row in rows if row.matters],
            "differing": sum(row.differs for row in rows),
            "sides": [(each, newest_report(each), verdict_of_machine(each)) for each in (left, right)],
        }
    return render(request, "inventory/environments/diff.html", context)


def machine_named(machines: list[Instance], pk: str) -> Instance | None:
    return next((machine for machine in machines if str(machine.pk) == pk), None)
