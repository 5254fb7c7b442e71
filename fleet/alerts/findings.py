"""What a rule found: one signal of one cause on one subject. Pure: no Django, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

URGENT, WARNING, NOTE = "urgent", "warning", "note"
RANKS: Mapping[str, int] = {URGENT: 3, WARNING: 2, NOTE: 1, "": 0}
Key = tuple[str, str]
Part = tuple[str, str]


class Finding(Struct, frozen=True, gc=False):
    """One rule that fires for one part of one subject.

    `keeps`: the evidence is missing, or lies between the level that raises and the one that clears. Such a finding
    opens nothing, and it leaves open what is open. `since`: when it began, where the evidence tells; None = now.
    `scope`, `price_per_hour`: see models.Signal.
    """

    cause: str
    subject: str
    kind: str
    severity: str = WARNING
    detail: str = ""
    keeps: bool = False
    since: datetime | None = None
    instance_id: int | None = None
    account_id: int | None = None
    scope: str = ""
    price_per_hour: Decimal | None = None
    currency: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return (self.cause, self.subject)

    @property
    def part(self) -> Part:
        return (self.kind, self.detail)


def instance_subject(instance_id: int) -> str:
    return f"instance:{instance_id}"


def account_subject(account_id: int) -> str:
    return f"account:{account_id}"


def worst(severities: Iterable[str]) -> str:
    return max(severities, key=lambda severity: RANKS[severity], default="")


def at_stake(parts: Iterable[tuple[str, Decimal | None]]) -> Decimal | None:
    """Money an hour of (scope, price) pairs: scopes add up, and "" stands for all of the subject. None where no price is known."""
    by_scope: dict[str, Decimal] = {}
    for scope, price in parts:
        if price is not None:
            by_scope[scope] = max(price, by_scope.get(scope, price))
    if "" in by_scope:
        return by_scope[""]
    return sum(by_scope.values(), Decimal(0)) if by_scope else None
