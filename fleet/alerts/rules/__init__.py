"""The rules: pure functions from a snapshot of a team's rows to findings. They import no Django and read no clock.

`all_rules` is the registry; words for people are in fleet/alerts/rule_words.py.
"""

from __future__ import annotations

from fleet.alerts.rules import (
    agents,
    errors,
    fullness,
    gpus,
    lists,
    notices,
    operations,
    own,
    providers,
    reporting,
    throttling,
    work,
)
from fleet.alerts.rules.base import RuleKind

_MODULES = (reporting, gpus, errors, throttling, fullness, work, agents, providers, lists, notices, operations, own)
_RULES: dict[str, RuleKind] = {rule.kind: rule for module in _MODULES for rule in module.RULES}


def all_rules() -> list[RuleKind]:
    """In the order in which pages list them."""
    return list(_RULES.values())


def rule_of(kind: str) -> RuleKind | None:
    return _RULES.get(kind)
