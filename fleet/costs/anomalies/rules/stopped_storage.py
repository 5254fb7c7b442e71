"""The disks of stopped machines add up to more a month than they should."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from fleet.alerts.findings import NOTE
from fleet.alerts.rules.base import Threshold
from fleet.costs.anomalies.rules.base import TEAM, Anomaly, AnomalyKind, Facts, Limits, Looked, decimal, reaches, text

NAMED = 5
MONTH_HOURS = 730


def look(facts: Facts, limits: Limits, open_subjects: Collection[str]) -> Looked:
    """Of the dearest the names are in the evidence."""
    whole = facts.stopped_per_month
    if whole is None:
        whole = sum((one.per_month for one in facts.stopped), Decimal(0))
    if not whole or not reaches(whole, decimal(limits["per_month"]), is_open=TEAM in open_subjects):
        return ()
    dearest = sorted(facts.stopped, key=lambda one: (-one.per_month, one.name))[:NAMED]
    values = {
        "per_month": text(whole),
        "machines": len({one.pk for one in facts.stopped}),
        "dearest": [{"machine": one.name, "per_month": text(one.per_month)} for one in dearest],
    }
    return (Anomaly(TEAM, values, per_hour=whole / MONTH_HOURS),)


RULE = AnomalyKind("costs_stopped_storage", NOTE, look, (Threshold("per_month", 100, 0.01, 1_000_000, "money"),))
