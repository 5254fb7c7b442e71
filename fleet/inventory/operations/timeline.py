"""What operations say on a timeline, and all steps of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.utils.translation import gettext as _

from fleet.inventory.failures import in_readers_language
from fleet.inventory.models import Instance
from fleet.inventory.operations.act_words import seen_words, verb
from fleet.inventory.operations.models import Operation, OperationEvent
from fleet.inventory.operations.words import PROOFS, event_words, failure_words
from fleet.panels import Context, TimelineEntry, timeline_limit
from fleet.teams.access import TeamRequest

# The steps in between are on the operation's own page.
TOLD = ("requested", "accepted", "partial", "found", "proved", "failed", "reopened", "superseded", "abandoned")
MARKS: Mapping[str, str] = {"failed": "warning", "reopened": "warning", "partial": "warning"}


def operated(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """Entries of [since, until); without a machine the team's newest."""
    rows = OperationEvent.objects.filter(at__gte=since, at__lt=until, kind__in=TOLD, operation__team=request.team)
    rows = rows.filter(operation__instance=instance) if instance else rows
    newest = rows.select_related("operation__instance").order_by("-at", "-pk")[: timeline_limit(instance)]
    return {"entries": [entry_of(event, named=instance is None) for event in newest]}


def entry_of(event: OperationEvent, *, named: bool) -> TimelineEntry:
    operation = event.operation
    return TimelineEntry(
        at=event.at,
        text=_("%(act)s: %(event)s") % {"act": verb(operation.kind), "event": in_a_sentence(event_words(event.kind))},
        detail=detail_of(event),
        mark=MARKS.get(event.kind, ""),
        machine=operation.machine_name if named else "",
        instance_id=operation.instance_id if named else None,
    )


def in_a_sentence(words: str) -> str:
    return words[:1].lower() + words[1:]


def detail_of(event: OperationEvent) -> str:
    operation = event.operation
    if event.kind == "requested":
        return ", ".join(filter(None, (operation.requested_label, event.detail)))
    if event.kind == "proved":
        return str(PROOFS.get(operation.proof, ""))
    if event.error_kind:
        return in_readers_language(event.detail) or failure_words(event.error_kind)
    return in_readers_language(event.detail)


def event_lines(operation: Operation) -> list[TimelineEntry]:
    """Every step, the newest first, in the shape of a timeline."""
    events = operation.events.select_related("operation").order_by("-at", "-pk")
    return [
        TimelineEntry(
            at=event.at, text=event_words(event.kind), detail=step_detail(event), mark=MARKS.get(event.kind, "")
        )
        for event in events
    ]


def step_detail(event: OperationEvent) -> str:
    if event.kind == "seen" and event.seen_state:
        return seen_words(event.operation.kind, event.seen_state, event.seen_billing)
    return detail_of(event)
