"""A day cost a multiple of what its weekday usually costs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from statistics import median

from fleet.alerts.findings import NOTE
from fleet.alerts.rules.base import Threshold
from fleet.costs.anomalies.rules.base import TEAM, Anomaly, AnomalyKind, Facts, Limits, Looked, decimal, reaches, text

WEEKS, LEAST_WEEKS = 4, 3


def look(facts: Facts, limits: Limits, open_subjects: Collection[str]) -> Looked:
    """The median of the same weekday of the four weeks before; it is over when a whole day is as usual again."""
    day = facts.last
    if day is None:
        return None
    before = {day.day - timedelta(weeks=week) for week in range(1, WEEKS + 1)}
    same = [one.amount for one in facts.days if one.day in before]
    if len(same) < LEAST_WEEKS:
        return None
    usual, is_open = median(same), TEAM in open_subjects
    more = day.amount - usual
    if not reaches(day.amount, usual * decimal(limits["factor"]), is_open=is_open):
        return ()
    if more <= 0 or not reaches(more, decimal(limits["least_a_day"]), is_open=is_open):
        return ()
    values = {
        "day": day.day.isoformat(),
        "amount": text(day.amount),
        "usual": text(usual),
        "weeks": len(same),
        "factor": f"{day.amount / usual:.1f}" if usual else "",
    }
    return (Anomaly(TEAM, values, per_hour=more / 24),)


RULE = AnomalyKind(
    "costs_weekday",
    NOTE,
    look,
    (Threshold("factor", 1.5, 1.05, 20, "ratio"), Threshold("least_a_day", 50, 0, 1_000_000, "money")),
)
