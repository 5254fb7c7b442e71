"""Idle stops and planned acts as entries of a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.utils.translation import gettext as _

from fleet.idle.shutdown.models import IdleStopEvent, IdleStopStage
from fleet.idle.shutdown.words import event_words, why_words
from fleet.inventory.models import Instance
from fleet.inventory.plans.actions import ended_words
from fleet.inventory.plans.models import PlannedAction, PlannedActionState
from fleet.inventory.plans.reasons import reason_text
from fleet.inventory.timeline import about
from fleet.panels import Context, TimelineEntry, timeline_limit
from fleet.teams.access import TeamRequest
from fleet.teams.actor_words import actor_text

MARKS: Mapping[str, str] = {
    IdleStopStage.WARNED: "note",
    IdleStopStage.GRACE: "note",
    IdleStopStage.STOPPED: "stopped",
    IdleStopStage.FAILED: "warning",
}
# Of these the detail is a code, of all others it is what somebody or something said.
CODED = frozenset(IdleStopStage.values)


def told_stops(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """Entries of [since, until); without a machine the team's newest."""
    rows = IdleStopEvent.objects.filter(at__gte=since, at__lt=until, stop__team=request.team)
    rows = rows.exclude(kind=IdleStopStage.WATCHING)
    rows = rows.filter(stop__instance=instance) if instance else rows
    newest = rows.select_related("stop__instance").order_by("-at", "-pk")[: timeline_limit(instance)]
    return {"entries": [stop_entry(event, named=instance is None) for event in newest]}


def stop_entry(event: IdleStopEvent, *, named: bool) -> TimelineEntry:
    said = why_words(event.detail) if event.kind in CODED else event.detail
    who = actor_text(event.by_label) if event.by_label else ""
    return TimelineEntry(
        at=event.at,
        text=_("Idle stop: %(event)s") % {"event": event_words(event.kind)},
        detail=", ".join(filter(None, (event.stop.policy_name, said, who))),
        mark=MARKS.get(event.kind, ""),
        **about(event.stop.instance, named=named),
    )


def told_plans(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """When an act was planned, and what became of it."""
    rows = PlannedAction.objects.filter(team=request.team).select_related("instance", "ended_by")
    rows = rows.filter(instance=instance) if instance else rows
    limit, named = timeline_limit(instance), instance is None
    planned = rows.filter(created_at__gte=since, created_at__lt=until).order_by("-created_at")[:limit]
    ended = rows.filter(ended_at__gte=since, ended_at__lt=until).order_by("-ended_at")[:limit]
    entries = [planned_entry(action, named=named) for action in planned]
    entries += [ended_entry(action, action.ended_at, named=named) for action in ended if action.ended_at]
    return {"entries": entries}


def planned_entry(action: PlannedAction, *, named: bool) -> TimelineEntry:
    return TimelineEntry(
        at=action.created_at,
        text=_("Planned: %(act)s") % {"act": action.get_verb_display()},
        detail=reason_text(action),
        **about(action.instance, named=named),
    )


def ended_entry(action: PlannedAction, at: datetime, *, named: bool) -> TimelineEntry:
    who = action.ended_by.display_name if action.ended_by else ""
    return TimelineEntry(
        at=at,
        text=_("Planned %(act)s: %(state)s") % {"act": action.get_verb_display(), "state": action.get_state_display()},
        detail=", ".join(filter(None, (ended_words(action), who))),
        mark="warning" if action.state == PlannedActionState.FAILED else "",
        **about(action.instance, named=named),
    )
