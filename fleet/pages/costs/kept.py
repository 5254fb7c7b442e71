"""What several sections of the page of costs are made from: each question is asked once a request, so that they cannot differ."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Spend, spend
from fleet.pages.costs.asked import Asked
from fleet.teams.access import TeamRequest

KEPT = "_answers_of_spend"


def asked_once(request: TeamRequest, **question: Any) -> Spend:
    """As `spend` answers of the request's team. Filters have no hash, so the few questions of a page are compared."""
    kept: list[tuple[dict[str, Any], Spend]] = getattr(request, KEPT, [])
    for before, answer in kept:
        if before == question:
            return answer
    answer = spend(team=request.team, **question)
    setattr(request, KEPT, [*kept, (question, answer)])
    return answer


def month_of(request: TeamRequest, month: Month) -> Spend:
    """By machine."""
    where = Asked.of(request.GET, month).where
    return asked_once(request, start=month.first, end=month.next_first, by=(By.MACHINE,), where=where)


def days_before(request: TeamRequest, asked: Asked) -> Spend:
    """The same days of the month before, by the split; machines, of which there are thousands, as one."""
    start, end = same_days_before(asked.month)
    by = () if asked.by is By.MACHINE else (asked.by,)
    return asked_once(request, start=start, end=end, by=by, where=asked.where, label=asked.label)


def same_days_before(month: Month) -> tuple[date, date]:
    """As many days of the month before as have gone of this one; all of it for a month that is over."""
    before = month.before
    gone = (month.end - month.first).days
    return before.first, before.next_first if not month.is_current else min(
        before.first + timedelta(days=gone), before.next_first
    )
