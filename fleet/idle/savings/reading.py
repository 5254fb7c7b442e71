"""How much was saved, by currency: money is never added across them."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from decimal import Decimal

from django.db.models import Q, QuerySet

from fleet.idle.savings.booking import amount_of
from fleet.idle.shutdown.models import IdleSaving
from fleet.teams.models import Team


def savings_of(team: Team, start: datetime | None = None, end: datetime | None = None) -> QuerySet[IdleSaving]:
    """Those that have a part in [start, end), newest first."""
    rows = IdleSaving.objects.filter(team=team).select_related("instance", "stop", "planned_action")
    if end is not None:
        rows = rows.filter(since__lt=end)
    if start is not None:
        rows = rows.filter(Q(until=None) | Q(until__gt=start))
    return rows.order_by("-since", "-pk")


def saved(team: Team, start: datetime, end: datetime) -> dict[str, Decimal]:
    """What was saved in [start, end), as far as it is counted: a saving that grows over midnight is of both days."""
    amounts: defaultdict[str, Decimal] = defaultdict(Decimal)
    for saving in savings_of(team, start, end):
        part = amount_of(saving, max(saving.since, start), min(saving.counted_until, end))
        if part:
            amounts[saving.currency] += part
    return dict(amounts)
