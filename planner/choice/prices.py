"""What a number of GPUs costs an hour: the team's own price, else the cheapest dated sample of a machine that has that many."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from planner.catalogue.prices import prices_of
from planner.wishes import Market


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """`per_hour`: of all GPUs together. `observed_on` is None for a price that the team typed."""

    per_hour: Decimal
    per_gpu_hour: Decimal
    currency: str
    provider: str
    sku: str
    kind: str
    observed_on: date | None
    source: str


def hourly_price(gpu_id: str, count: int, market: Market) -> HourlyPrice | None:
    """None where no price is known for exactly so many: none is made up."""
    for known, per_gpu in market.team_prices:
        if known == gpu_id:
            return HourlyPrice(per_gpu * count, per_gpu, market.currency, "", "", "team", None, "")
    for price in prices_of(gpu_id, kinds=market.price_kinds, currency=market.currency):
        machines = price.machines_for(count)
        # Hosts of a marketplace stand in different places: no network joins two of them.
        if machines == 1 or (machines and price.kind != "community"):
            return HourlyPrice(
                price.per_gpu_hour * count,
                price.per_gpu_hour,
                price.currency,
                price.provider,
                price.sku,
                price.kind,
                price.observed_on,
                price.source,
            )
    return None
