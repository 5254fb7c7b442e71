"""The month by machine: one reading for every section of a page that needs it."""

from __future__ import annotations

from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Spend, spend
from fleet.pages.costs.asked import Asked
from fleet.teams.access import TeamRequest

KEPT = "_month_by_machine"


def month_of(request: TeamRequest, month: Month) -> Spend:
    kept: Spend | None = getattr(request, KEPT, None)
    if kept is None:
        where = Asked.of(request.GET, month).where
        kept = spend(team=request.team, start=month.first, end=month.next_first, by=(By.MACHINE,), where=where)
        setattr(request, KEPT, kept)
    return kept
