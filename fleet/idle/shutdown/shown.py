"""Stops as pages show them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from fleet.idle.shutdown.models import OPEN, IdleStop
from fleet.idle.shutdown.words import stop_words
from fleet.teams.models import Team

__all__ = ["RECENT", "stop_words", "stops_under_way"]

# How long after its end a stop still stands on the page.
RECENT = timedelta(hours=1)


def stops_under_way(team: Team, now: datetime) -> list[IdleStop]:
    """Open ones, the next to be stopped first, and those that ended within the last hour. With machine, account and operation: two queries."""
    rows = IdleStop.objects.filter(OPEN | Q(ended_at__gte=now - RECENT), team=team)
    rows = rows.select_related("instance__account", "instance__owner", "policy", "operation", "hook_run")
    found = list(rows.defer("instance__account__credentials").prefetch_related("events"))
    return sorted(found, key=lambda stop: (stop.ended_at is not None, stop.deadline or stop.since, stop.pk))
