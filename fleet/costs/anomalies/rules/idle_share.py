"""The part of a day's money that went to idle GPUs is so many points above that of the seven days before."""

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
    day = facts.last
    if day is None or day.idle_percent is None:
        return None
    usual = middle([one.idle_percent for one in facts.week_before(day.day) if one.idle_percent is not None])
    if usual is None:
        return None
    is_open, points = TEAM in open_subjects, day.idle_percent - usual
    more = day.amount * points / 100
    if points <= 0 or not reaches(points, decimal(limits["points"]), is_open=is_open):
        return ()
    if not reaches(more, decimal(limits["least_a_day"]), is_open=is_open):
        return ()
    values = {
        "day": day.day.isoformat(),
        "percent": round(day.idle_percent),
        "usual": round(usual),
        "idle": text(day.idle),
        "a_day": text(more),
    }
    return (Anomaly(TEAM, values, per_hour=more / 24),)


RULE = AnomalyKind(
    "costs_idle_share",
    WARNING,
    look,
    (Threshold("points", 15, 1, 100, "percent"), Threshold("least_a_day", 50, 0, 1_000_000, "money")),
)
