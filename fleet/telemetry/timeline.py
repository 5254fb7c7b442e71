"""Events of machines as entries of a timeline."""

from __future__ import annotations

from datetime import datetime

from fleet.inventory.models import Instance
from fleet.panels import TIMELINE_LIMIT, Context, TimelineEntry
from fleet.teams.access import TeamRequest
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.words import event_place, event_severity, event_word

# A machine that reports XIDs by the hundred fills its own page no further.
MACHINE_LIMIT = 200


def machine_events(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """`instance` None: the newest of the whole team."""
    found = MachineEvent.objects.filter(at__gte=since, at__lt=until).select_related("gpu", "instance")
    found = found.filter(instance=instance) if instance else found.filter(instance__team=request.team)
    limit = TIMELINE_LIMIT if instance is None else MACHINE_LIMIT
    return {"entries": [_entry(event, many=instance is None) for event in found.order_by("-at")[:limit]]}


def _entry(event: MachineEvent, *, many: bool) -> TimelineEntry:
    details = (event_place(event), event.detail)
    return TimelineEntry(
        at=event.at,
        text=event_word(event),
        detail=" · ".join(detail for detail in details if detail),
        mark=event_severity(event),
        machine=event.instance.name if many else "",
        instance_id=event.instance_id if many else None,
    )
