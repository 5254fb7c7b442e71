"""Sums of money that keep currencies apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal


def total(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """The sums by currency. One that comes to nothing is kept while it is the only one: known to be zero is not unknown."""
    sums: dict[str, Decimal] = {}
    for part in parts:
        for currency, amount in part.items():
            sums[currency] = sums.get(currency, Decimal(0)) + amount
    return {currency: amount for currency, amount in sums.items() if amount or len(sums) == 1}
