"""A machine that was not there a day ago costs more an hour than people want to find out from the bill."""

from __future__ import annotations

from collections.abc import Collection

from fleet.alerts.findings import WARNING, instance_subject
from fleet.alerts.rules.base import Threshold
from fleet.costs.anomalies.rules.base import Anomaly, AnomalyKind, Facts, Limits, Looked, decimal, reaches, text


def look(facts: Facts, limits: Limits, open_subjects: Collection[str]) -> Looked:
    limit = decimal(limits["per_hour"])
    return [
        Anomaly(subject, {"per_hour": text(price)}, instance=one.pk, per_hour=price)
        for one in facts.new_machines
        for subject, price in [(instance_subject(one.pk), one.price_per_hour)]
        if price is not None and reaches(price, limit, is_open=subject in open_subjects)
    ]


RULE = AnomalyKind("costs_new_machine", WARNING, look, (Threshold("per_hour", 20, 0.01, 100_000, "money"),))
