"""Rent or buy with what was measured: the fleet's own utilization and price, reckoned by the planner's one formula."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from fleet.costs.rightsizing.sizing.figures import MONTH_HOURS
from fleet.costs.rightsizing.sizing.speed import known_gpus
from fleet.costs.rightsizing.use import Use
from planner.catalogue.prices import PurchasePrice, purchase_prices
from planner.owning import Band, Comparison, Purchase, compare
from planner.web.inputs import PlanInput
from planner.web.rentorbuy import purchase_of, usual_watts

# What one server holds.
MOST_GPUS = 8
RENT = "rent"
HUNDREDTH = Decimal("0.01")
LEAST_USE = HUNDREDTH


@dataclass(frozen=True, slots=True)
class RentOrBuy:
    """`low` and `high`: the break-even with every input as far off as published figures lie apart, as if they were independent.

    Ratios are own(1) / rent: above 1 there is no break-even. Amounts are a month of `gpus` GPUs.
    """

    use: Use
    gpus: int
    purchase: Purchase
    price: PurchasePrice
    watts: Decimal
    given: Mapping[str, Any]
    found: Comparison
    low: Decimal
    high: Decimal

    @property
    def month_gpu_hours(self) -> Decimal:
        return MONTH_HOURS * self.gpus

    @property
    def rent_always(self) -> Decimal:
        return self.found.rent_per_gpu_hour * self.month_gpu_hours

    @property
    def rent_by_the_hour(self) -> Decimal:
        return self.rent_always * self.use.utilization

    @property
    def own(self) -> Decimal:
        return self.found.own_per_gpu_hour * self.month_gpu_hours

    @property
    def ratio(self) -> Decimal:
        return self.found.own_per_gpu_hour / self.found.rent_per_gpu_hour

    @property
    def own_range(self) -> tuple[Decimal, Decimal]:
        """Without what the rent may be off."""
        own_bands = [band for band in self.found.sensitivity if band.key != RENT]
        low, high = all_together(self.ratio, own_bands)
        return low * self.rent_always, high * self.rent_always

    @property
    def week_range(self) -> tuple[Decimal, Decimal]:
        weeks = self.use.weeks or (self.use.utilization,)
        return min(weeks), max(weeks)

    @property
    def overlaps(self) -> bool:
        """Whether measured weeks and likely break-evens share a utilization: then neither answer is sure."""
        least, most = self.week_range
        return least <= self.high and most >= self.low


def rent_or_buy(use: Use) -> RentOrBuy | None:
    """None where the catalogue has no purchase price or power of this GPU: none is made up."""
    gpu = known_gpus().get(use.gpu_model)
    price = purchase_prices().get(gpu.id) if gpu else None
    watts = usual_watts(gpu) if gpu else None
    if gpu is None or price is None or watts is None or use.utilization <= 0:
        return None
    given = usual_inputs()
    gpus = min(MOST_GPUS, use.gpus)
    purchase = purchase_of(gpus, price.price, watts, given)
    found = compare(purchase, rent_per_gpu_hour=use.price_per_gpu_hour, utilization=min(use.utilization, Decimal(1)))
    ratio = found.own_per_gpu_hour / found.rent_per_gpu_hour
    return RentOrBuy(use, gpus, purchase, price, watts, given, found, *all_together(ratio, found.sensitivity))


def usual_inputs() -> dict[str, Any]:
    """What the planner reckons with where nobody typed anything."""
    asked = PlanInput(data={})
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


def all_together(ratio: Decimal, bands: Iterable[Band]) -> tuple[Decimal, Decimal]:
    """Deviations of independent inputs add as squares, each side by itself."""
    below, above = Decimal(0), Decimal(0)
    for band in bands:
        least, most = sorted((band.ratio_at_low, band.ratio_at_high))
        below += min(least - ratio, Decimal(0)) ** 2
        above += max(most - ratio, Decimal(0)) ** 2
    return max(ratio - below.sqrt(), Decimal(0)), ratio + above.sqrt()


def planner_query(found: RentOrBuy, *, currency: str) -> str:
    """The planner's page with this GPU, these prices and this utilization."""
    gpu = known_gpus()[found.use.gpu_model]
    measured = max(found.use.utilization.quantize(HUNDREDTH), LEAST_USE)
    return urlencode(
        {
            "gpu_ids": gpu.id,
            "gpu": gpu.id,
            "count": found.gpus,
            "most_gpus": found.gpus,
            "currency": currency,
            "price_per_gpu_hour": f"{found.use.price_per_gpu_hour:.4f}",
            "utilization": min(measured, Decimal(1)),
        }
    )
