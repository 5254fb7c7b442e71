"""What happened: the entries of every slice that registered a timeline, newest first."""

from __future__ import annotations

from datetime import datetime

from fleet import panels
from fleet.inventory.models import Instance
from fleet.panels import TimelineEntry
from fleet.teams.access import TeamRequest


def entries(
    request: TeamRequest, instance: Instance | None, *, since: datetime, until: datetime, limit: int
) -> list[TimelineEntry]:
    found: list[TimelineEntry] = []
    for source in panels.timeline_sources:
        filled = source.context(request, instance, since, until)
        found.extend(filled["entries"] if filled else [])
    return sorted(found, key=lambda entry: entry.at, reverse=True)[:limit]
