"""What the page about costs says of bills: one month of one account, compared with what was counted."""

from __future__ import annotations

from datetime import date
from typing import Any

from fleet.costs.bills.explaining import heading, signed, told_groups, told_parts
from fleet.costs.bills.models import Reconciliation
from fleet.costs.bills.shown import reconciliation
from fleet.costs.month import Month
from fleet.panels import Context
from fleet.teams.access import TeamRequest

# The rest stands on the page of the comparison.
SHOWN = 8


def reconcile_panel(request: TeamRequest, month: Month) -> Context | None:
    """The account whose difference is the largest, of this month or, where its bills have not come, of the one before. None: no bills."""
    made = Reconciliation.objects.filter(
        account__team=request.team, month__in=[month.first, month.before.first]
    ).select_related("account")
    latest = max(made, key=lambda one: (one.month, abs(one.billed - one.counted)), default=None)
    if latest is None:
        return None
    return {"others": other_months(request, latest.month), **told_reconciliation(latest, most=SHOWN)}


def told_reconciliation(made: Reconciliation, *, most: int) -> dict[str, Any]:
    found = reconciliation(made)
    return {
        "found": found,
        "heading": heading(found),
        "parts": told_parts(found),
        "groups": told_groups(found.groups[:most], found.currency),
        "difference": signed(found.difference, found.currency),
        "left": signed(found.left, found.currency) if found.left else "",
        "accepted": signed(found.accepted, found.currency) if found.accepted else "",
        "hidden": max(len(found.groups) - most, 0),
    }


def other_months(request: TeamRequest, month: date) -> list[Reconciliation]:
    """What else was compared of this month, for the choice beside the heading."""
    made = Reconciliation.objects.filter(account__team=request.team, month=month).select_related("account")
    return list(made.order_by("account__name", "currency"))
