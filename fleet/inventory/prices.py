"""What the fleet costs at this moment: price x now. Currencies are never added, and an unknown price is never zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from fleet.inventory.models import Instance
from fleet.providers.base import Billing


@dataclass(frozen=True, slots=True)
class Burn:
    """amounts: currency -> an hour. unpriced: machines that cost something, or may, and nobody knows how much."""

    amounts: dict[str, Decimal] = field(default_factory=dict)
    unpriced: int = 0
    oldest_priced_at: datetime | None = None


def price_now(instance: Instance) -> Decimal | None:
    """What an hour costs in the machine's present state; None = unknown."""
    if instance.billing == Billing.NONE:
        return Decimal(0)
    if instance.billing == Billing.FULL:
        return instance.price_per_hour
    if instance.billing == Billing.STORAGE:
        return instance.storage_price_per_hour
    return None


def burn(instances: Iterable[Instance]) -> Burn:
    """The burn rate of machines that are still there; gone ones cost nothing."""
    amounts: dict[str, Decimal] = {}
    unpriced, oldest = 0, None
    for instance in instances:
        if instance.gone_at or instance.billing == Billing.NONE:
            continue
        price = price_now(instance)
        if price is None:
            unpriced += 1
            continue
        amounts[instance.currency] = amounts.get(instance.currency, Decimal(0)) + price
        if instance.priced_at and (oldest is None or instance.priced_at < oldest):
            oldest = instance.priced_at
    return Burn(amounts, unpriced, oldest)
