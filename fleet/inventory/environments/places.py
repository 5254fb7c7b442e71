"""On what a page is asked to hold images against: a machine of the team, or a GPU with or without a driver."""

from __future__ import annotations

from typing import Any

from fleet.inventory.environments.forms import PlaceForm
from fleet.inventory.environments.verdicts import Place, gpu_choices, gpu_named, place_of
from fleet.inventory.models import Instance
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team


def asked_place(request: TeamRequest) -> Place | None:
    """None where nothing is asked. A machine counts before a GPU."""
    form = PlaceForm(request.GET)
    if not form.is_valid():
        return None
    on, gpu, driver = (form.cleaned_data[name] for name in ("on", "gpu", "driver"))
    machine = next((each for each in machines_of(request.team) if str(each.pk) == on), None)
    if machine is not None:
        return place_of(machine)
    return Place(gpu, driver) if gpu else None


def place_context(request: TeamRequest, place: Place | None) -> dict[str, Any]:
    """What the pickers show."""
    asked = {name: request.GET.get(name, "") for name in ("on", "gpu", "driver")}
    return {
        "place": place,
        "place_is_known": place is not None and gpu_named(place.gpu_model) is not None,
        "asked": asked,
        "machines": machines_of(request.team),
        "gpu_models": gpu_choices(),
    }


def machines_of(team: Team) -> list[Instance]:
    rows = Instance.objects.filter(team=team, gone_at=None).only("name", "gpu_model", "gpu_count")
    return list(rows.order_by("name", "pk"))
