"""Dated prices of rented and bought GPUs. Samples, not offers: every one keeps its source and the day it was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from statistics import median_low
from typing import Literal, get_args

from planner.catalogue.rows import Row, read_rows

# "community": machines of private hosts on a marketplace; "spot": may be taken away.
PriceKind = Literal["on-demand", "community", "spot"]


@dataclass(frozen=True, slots=True)
class RentPrice:
    """Per GPU and hour of a machine with `gpus` to `most_gpus` of them: a node of eight is not sold by the card."""

    gpu_id: str
    provider: str
    sku: str
    gpus: int
    most_gpus: int
    per_gpu_hour: Decimal
    currency: str
    kind: PriceKind
    region: str
    observed_on: date
    source: str

    def machines_for(self, count: int) -> int | None:
        """How many of these machines give exactly `count` GPUs; None where they don't. One card each is no way to several machines."""
        if self.gpus <= count <= self.most_gpus:
            return 1
        return count // self.most_gpus if self.most_gpus > 1 and count % self.most_gpus == 0 else None


@dataclass(frozen=True, slots=True)
class PurchasePrice:
    gpu_id: str
    price: Decimal
    currency: str
    observed_on: date
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class PriceRange:
    """What a GPU-hour of one kind costs, lowest to highest, over `count` samples of which the oldest was read on `oldest`."""

    lowest: RentPrice
    median: Decimal
    highest: RentPrice
    count: int
    oldest: date


@cache
def rent_prices() -> tuple[RentPrice, ...]:
    return tuple(map(_rent, read_rows("prices.csv")))


@cache
def purchase_prices() -> Mapping[str, PurchasePrice]:
    return {price.gpu_id: price for price in map(_purchase, read_rows("purchase_prices.csv"))}


def prices_of(gpu_id: str, *, kinds: Iterable[PriceKind], currency: str = "USD") -> list[RentPrice]:
    """Cheapest first."""
    wanted = set(kinds)
    found = [
        price
        for price in rent_prices()
        if price.gpu_id == gpu_id and price.kind in wanted and price.currency == currency
    ]
    return sorted(found, key=lambda price: price.per_gpu_hour)


def price_range(gpu_id: str, *, kinds: Iterable[PriceKind], currency: str = "USD") -> PriceRange | None:
    """None where nothing is known: no price is made up."""
    found = prices_of(gpu_id, kinds=kinds, currency=currency)
    if not found:
        return None
    return PriceRange(
        lowest=found[0],
        median=median_low([price.per_gpu_hour for price in found]),
        highest=found[-1],
        count=len(found),
        oldest=min(price.observed_on for price in found),
    )


def _money(row: Row, column: str) -> Decimal:
    try:
        amount = Decimal(row.text(column))
    except InvalidOperation:
        raise row.fault(column, "amount of money") from None
    if not (amount.is_finite() and amount > 0):
        raise row.fault(column, "amount above 0")
    return amount


def _day(row: Row, column: str) -> date:
    try:
        return date.fromisoformat(row.text(column))
    except ValueError:
        raise row.fault(column, "day like 2026-09-25") from None


def _kind(row: Row) -> PriceKind:
    for kind in get_args(PriceKind):
        if kind == row.text("kind"):
            found: PriceKind = kind
            return found
    raise row.fault("kind", f"one of {', '.join(get_args(PriceKind))}")


def _rent(row: Row) -> RentPrice:
    return RentPrice(
        gpu_id=row.text("gpu_id"),
        provider=row.text("provider"),
        sku=row.optional_text("sku"),
        gpus=row.whole("gpus"),
        most_gpus=row.whole("most_gpus"),
        per_gpu_hour=_money(row, "price_per_gpu_hour"),
        currency=row.text("currency"),
        kind=_kind(row),
        region=row.optional_text("region"),
        observed_on=_day(row, "observed_on"),
        source=row.text("source"),
    )


def _purchase(row: Row) -> PurchasePrice:
    return PurchasePrice(
        gpu_id=row.text("gpu_id"),
        price=_money(row, "price"),
        currency=row.text("currency"),
        observed_on=_day(row, "observed_on"),
        source=row.text("source"),
        confidence=row.text("confidence"),
    )
