"""Rent or buy: what a GPU-hour costs on hardware of one's own, and from which utilization that is less than the rent.

own(u) = [price x (1 - residual) + financing + maintenance + spares + network + power + staff] / (GPUs x 8760 x years x u).
Power is either a place in a data centre, whose price per kW holds the electricity already, or electricity x PUE: never both.
The break-even utilization is own(1) / rent. Above 1 there is none: however busy the machine is, renting is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from planner.reasons import Reason, reason

HOURS_PER_YEAR = Decimal(8760)
MONTHS_PER_YEAR = Decimal(12)
# What published comparisons agree on: crossovers of 50 to 65 % over two years, 59 % over four, 72 % for a server at mid-2026 rents.
RENT_BELOW_UTILIZATION = Decimal("0.70")


@dataclass(frozen=True, slots=True)
class Colocation:
    """A rented place: `price_per_kw_month` holds electricity and cooling."""

    price_per_kw_month: Decimal

    def cost(self, *, kilowatts: Decimal, years: Decimal) -> Decimal:
        return self.price_per_kw_month * kilowatts * MONTHS_PER_YEAR * years


@dataclass(frozen=True, slots=True)
class OwnRoom:
    """`power_usage_effectiveness`: power of the building over power of the machines, 1 and above."""

    price_per_kwh: Decimal
    power_usage_effectiveness: Decimal

    def cost(self, *, kilowatts: Decimal, years: Decimal) -> Decimal:
        return kilowatts * self.power_usage_effectiveness * self.price_per_kwh * HOURS_PER_YEAR * years


@dataclass(frozen=True, slots=True)
class Purchase:
    """What is bought and what it takes to run it. Amounts in one currency; shares from 0 to 1."""

    gpus: int
    price: Decimal
    years: Decimal
    kilowatts: Decimal
    power: Colocation | OwnRoom
    residual_share: Decimal = Decimal(0)
    # Interest on the part that is borrowed, over all the years.
    financed_share: Decimal = Decimal(0)
    interest_per_year: Decimal = Decimal(0)
    maintenance_share_per_year: Decimal = Decimal(0)
    spares_share: Decimal = Decimal(0)
    network_share: Decimal = Decimal(0)
    staff_per_year: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`costs` of owning over the whole time, by kind; `break_even` is a utilization, None where it lies above 1."""

    costs: Mapping[str, Decimal]
    own_per_gpu_hour: Decimal
    rent_per_gpu_hour: Decimal
    utilization: Decimal
    break_even: Decimal | None
    sensitivity: tuple[Band, ...]
    advice: tuple[Reason, ...]

    @property
    def own_per_useful_gpu_hour(self) -> Decimal:
        return self.own_per_gpu_hour / self.utilization

    @property
    def owning_is_cheaper(self) -> bool:
        return self.break_even is not None and self.utilization > self.break_even


@dataclass(frozen=True, slots=True)
class Band:
    """The break-even with one input lower and higher than assumed: own(1) / rent as it is, and None for never."""

    key: str
    low_input: Decimal
    high_input: Decimal
    ratio_at_low: Decimal
    ratio_at_high: Decimal

    @property
    def at_low(self) -> Decimal | None:
        return _reachable(self.ratio_at_low)

    @property
    def at_high(self) -> Decimal | None:
        return _reachable(self.ratio_at_high)


def costs_of_owning(purchase: Purchase) -> dict[str, Decimal]:
    """By kind, over all years; `hardware` is what the price loses until it is sold again."""
    price, years = purchase.price, purchase.years
    return {
        "hardware": price * (1 - purchase.residual_share),
        "financing": price * purchase.financed_share * purchase.interest_per_year * years,
        "maintenance": price * purchase.maintenance_share_per_year * years,
        "spares": price * purchase.spares_share,
        "network": price * purchase.network_share,
        "power": purchase.power.cost(kilowatts=purchase.kilowatts, years=years),
        "staff": purchase.staff_per_year * years,
    }


def own_per_gpu_hour(purchase: Purchase) -> Decimal:
    """With every GPU busy all the time."""
    hours = purchase.gpus * HOURS_PER_YEAR * purchase.years
    return sum(costs_of_owning(purchase).values(), Decimal(0)) / hours


def break_even(purchase: Purchase, *, rent_per_gpu_hour: Decimal) -> Decimal | None:
    """The utilization from which owning costs less, or None for never."""
    return _reachable(own_per_gpu_hour(purchase) / rent_per_gpu_hour)


def _reachable(utilization: Decimal) -> Decimal | None:
    return utilization if utilization <= 1 else None


def compare(purchase: Purchase, *, rent_per_gpu_hour: Decimal, utilization: Decimal) -> Comparison:
    """`utilization`: the share of all hours in which the GPUs would work. Raises ValueError naming the input that cannot be."""
    _check(purchase, rent_per_gpu_hour, utilization)
    even = break_even(purchase, rent_per_gpu_hour=rent_per_gpu_hour)
    return Comparison(
        costs=costs_of_owning(purchase),
        own_per_gpu_hour=own_per_gpu_hour(purchase),
        rent_per_gpu_hour=rent_per_gpu_hour,
        utilization=utilization,
        break_even=even,
        sensitivity=tuple(_sensitivity(purchase, rent_per_gpu_hour)),
        advice=tuple(_advice(even, utilization)),
    )


def _check(purchase: Purchase, rent: Decimal, utilization: Decimal) -> None:
    if purchase.gpus < 1:
        raise ValueError("gpus: at least 1")
    for name, amount in (("price", purchase.price), ("years", purchase.years), ("rent_per_gpu_hour", rent)):
        if amount <= 0:
            raise ValueError(f"{name}: must be above 0")
    for name, share in (("utilization", utilization), ("residual_share", purchase.residual_share)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name}: a share from 0 to 1")
    if not utilization:
        raise ValueError("utilization: must be above 0")
    if isinstance(purchase.power, OwnRoom) and purchase.power.power_usage_effectiveness < 1:
        raise ValueError("power_usage_effectiveness: 1 or more")


def _sensitivity(purchase: Purchase, rent: Decimal) -> Iterator[Band]:
    """Bands as wide as published figures for the same thing lie apart."""

    def at(changed: Purchase, rent_per_gpu_hour: Decimal = rent) -> Decimal:
        return own_per_gpu_hour(changed) / rent_per_gpu_hour

    low, high = Decimal("0.7"), Decimal("1.3")
    yield Band("rent", rent * low, rent * high, *(at(purchase, rent * by) for by in (low, high)))
    price = purchase.price
    near = Decimal("0.85"), Decimal("1.15")
    yield Band("price", price * near[0], price * near[1], *(at(replace(purchase, price=price * by)) for by in near))
    years = (max(purchase.years - 1, Decimal(1)), purchase.years + 1)
    yield Band("years", *years, *(at(replace(purchase, years=count)) for count in years))
    step = Decimal("0.15")
    shares = (max(purchase.residual_share - step, Decimal(0)), min(purchase.residual_share + step, Decimal(1)))
    yield Band("residual", *shares, *(at(replace(purchase, residual_share=share)) for share in shares))
    yield Band(
        "power", low, high, *(at(replace(purchase, power=_power_times(purchase.power, by))) for by in (low, high))
    )
    staff = (Decimal(0), purchase.staff_per_year * 2)
    yield Band("staff", *staff, *(at(replace(purchase, staff_per_year=amount)) for amount in staff))


def _power_times(power: Colocation | OwnRoom, factor: Decimal) -> Colocation | OwnRoom:
    if isinstance(power, Colocation):
        return Colocation(power.price_per_kw_month * factor)
    return replace(power, price_per_kwh=power.price_per_kwh * factor)


def _advice(even: Decimal | None, utilization: Decimal) -> Iterator[Reason]:
    if even is None:
        yield reason("owning.never")
    elif utilization > even:
        yield reason("owning.buy", break_even_percent=percent(even), utilization_percent=percent(utilization))
    else:
        yield reason("owning.rent", break_even_percent=percent(even), utilization_percent=percent(utilization))
    if utilization < RENT_BELOW_UTILIZATION:
        yield reason("owning.rule_of_thumb", percent=percent(RENT_BELOW_UTILIZATION))
    yield reason("owning.left_out")


def percent(share: Decimal) -> int:
    return int((share * 100).to_integral_value())
