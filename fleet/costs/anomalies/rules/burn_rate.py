"""What is charged an hour now is a multiple of the median of the last seven days."""

from __future__ import annotations

from collections.abc import Collection

from fleet.alerts.findings import WARNING
from fleet.alerts.rules.base import Threshold
from fleet.costs.anomalies.rules.base import (
    TEAM,
    Anomaly,
    AnomalyKind,
    Facts,
    Limits,
    Looked,
    decimal,
    middle,
    reaches,
    text,
)


def look(facts: Facts, limits: Limits, open_subjects: Collection[str]) -> Looked:
    """`least_a_day`: what it comes to in a day, beyond the median, has to be worth a word."""
    usual = middle([one.amount / 24 for one in facts.week_before(facts.burn_day)])
    if facts.burn_per_hour is None or usual is None:
        return None
    is_open = TEAM in open_subjects
    more = facts.burn_per_hour - usual
    if not reaches(facts.burn_per_hour, usual * decimal(limits["factor"]), is_open=is_open):
        return ()
    if not more or not reaches(more * 24, decimal(limits["least_a_day"]), is_open=is_open):
        return ()
    values = {
        "per_hour": text(facts.burn_per_hour),
        "usual": text(usual),
        "factor": f"{facts.burn_per_hour / usual:.1f}" if usual else "",
        "a_day": text(more * 24),
    }
    return (Anomaly(TEAM, values, per_hour=more),)


RULE = AnomalyKind(
    "costs_burn_rate",
    WARNING,
    look,
    (Threshold("factor", 1.5, 1.05, 20, "ratio"), Threshold("least_a_day", 50, 0, 1_000_000, "money")),
)
