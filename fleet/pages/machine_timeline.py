"""A machine's timeline: everything that was told of it in one list, newest first, to be narrowed by kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from fleet import panels
from fleet.inventory.models import Instance
from fleet.pages.timeline import entries
from fleet.teams.access import TeamRequest

SPANS = {"1": timedelta(days=1), "7": timedelta(days=7), "30": timedelta(days=30)}
DEFAULT_DAYS = "7"
SHOWN = 400
Text = str | Promise
# What each source is called as a filter; several that a person would not tell apart share one word.
KINDS: dict[str, tuple[Text, frozenset[str]]] = {
    "states": (_("States"), frozenset({"states"})),
    "alerts": (_("Alerts"), frozenset({"alerts"})),
    "stops": (_("Idle stops"), frozenset({"stops"})),
    "planned": (_("Planned acts"), frozenset({"planned"})),
    "jobs": (_("Jobs"), frozenset({"jobs"})),
    "holds": (_("Holds"), frozenset({"holds"})),
    "operations": (_("Operations"), frozenset({"operations"})),
    "provider": (_("Provider"), frozenset({"observations", "notices"})),
    "reports": (_("Reports"), frozenset({"events"})),
    "money": (_("Money"), frozenset({"money"})),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A link that adds its kind to what is shown, or takes it out."""

    name: str
    label: Text
    chosen: bool
    query: str


@require_safe
def machine_timeline(request: TeamRequest, pk: int) -> HttpResponse:
    """`?days=1|7|30`, `kind=…` any number of times; none: all. What makes no sense is left out."""
    rows = Instance.objects.select_related("account", "owner", "project")
    instance = get_object_or_404(rows, pk=pk, team=request.team)
    now = timezone.now()
    days = request.GET.get("days", "")
    days = days if days in SPANS else DEFAULT_DAYS
    chosen = [kind for kind in KINDS if kind in request.GET.getlist("kind")]
    found = entries(
        request, instance, since=now - SPANS[days], until=now, limit=SHOWN, without=unasked(chosen) if chosen else ()
    )
    context = {
        "nav": "instances",
        "instance": instance,
        "entries": found,
        "is_cut": len(found) == SHOWN,
        "spans": [(name, query_of(name, chosen), name == days) for name in SPANS],
        "filters": filters(days, chosen),
        "all_query": query_of(days, []),
        "any_chosen": bool(chosen),
        "days": days,
    }
    return render(request, "pages/machine_timeline.html", context)


def unasked(chosen: list[str]) -> frozenset[str]:
    """Sources of none of the chosen kinds. What a slice adds later, and no kind names, is shown only with all."""
    asked = frozenset[str]().union(*(KINDS[kind][1] for kind in chosen))
    return frozenset(source.name for source in panels.timeline_sources) - asked


def filters(days: str, chosen: list[str]) -> list[Filter]:
    return [
        Filter(kind, label, kind in chosen, query_of(days, [one for one in KINDS if (one in chosen) != (one == kind)]))
        for kind, (label, _sources) in KINDS.items()
    ]


def query_of(days: str, chosen: list[str]) -> str:
    return "?" + urlencode([("days", days), *(("kind", kind) for kind in chosen)])
