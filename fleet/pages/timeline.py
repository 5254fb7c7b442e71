"""What happened: the entries of every slice that registered a timeline, newest first."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from datetime import datetime

from fleet import panels
from fleet.inventory.models import Instance
from fleet.panels import TimelineEntry
from fleet.teams.access import TeamRequest


def entries(
    request: TeamRequest,
    instance: Instance | None,
    *,
    since: datetime,
    until: datetime,
    limit: int,
    without: Container[str] = (),
) -> list[TimelineEntry]:
    """`without`: names of sources that are not asked."""
    found: list[TimelineEntry] = []
    for source in panels.timeline_sources:
        if source.name in without:
            continue
        filled = source.context(request, instance, since, until)
        found.extend(replace(entry, kind=source.name) for entry in (filled["entries"] if filled else []))
    return sorted(found, key=lambda entry: entry.at, reverse=True)[:limit]
