"""The rules about unusual money, one a file: pure functions from facts to anomalies that carry their evidence.

A price that changed is looked for by the alert rule `price_changed`, at the listing that showed it.
"""

from __future__ import annotations

from fleet.costs.anomalies.rules import burn_rate, idle_share, new_machine, stopped_storage, weekday
from fleet.costs.anomalies.rules.base import AnomalyKind

_RULES: dict[str, AnomalyKind] = {
    module.RULE.kind: module.RULE for module in (burn_rate, new_machine, stopped_storage, idle_share, weekday)
}


def all_rules() -> list[AnomalyKind]:
    """In the order in which pages list them."""
    return list(_RULES.values())


def rule_of(kind: str) -> AnomalyKind | None:
    return _RULES.get(kind)
