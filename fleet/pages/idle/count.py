"""The badge of the rail: machines that are idle or whose stop is under way."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import ngettext

from fleet.idle.shutdown.models import IdleStop
from fleet.idle.verdict.verdict import Answer
from fleet.inventory.models import Instance
from fleet.pages.idle.stops import UNDER_WAY
from fleet.providers.base import InstanceState
from fleet.teams.access import TeamRequest

KEPT = "_idle_count"


def idle_count(request: TeamRequest) -> int:
    """Asked more than once a page, answered by one query."""
    if not hasattr(request, KEPT):
        setattr(request, KEPT, _count(request))
    counted: int = getattr(request, KEPT)
    return counted


def count_words(count: int) -> str:
    return ngettext("%(n)d idle or being stopped", "%(n)d idle or being stopped", count) % {"n": count}


def _count(request: TeamRequest) -> int:
    stopping = IdleStop.objects.filter(UNDER_WAY, team=request.team).values("instance_id")
    rented = Instance.objects.filter(team=request.team, gone_at=None).exclude(state=InstanceState.TERMINATED)
    return rented.filter(Q(idle_verdict__answer=Answer.IDLE) | Q(pk__in=stopping)).count()
