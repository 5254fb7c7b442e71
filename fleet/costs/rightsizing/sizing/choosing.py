"""The change that a machine's measured work allows and that saves most, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from fleet.costs.rightsizing.sizing.evidence import lacking
from fleet.costs.rightsizing.sizing.figures import (
    MONTH_HOURS,
    Candidate,
    Kind,
    LeftAlone,
    Measured,
    Option,
    Suggestion,
    Verdict,
    Why,
)
from fleet.costs.rightsizing.sizing.fitting import CHECKS, INTERRUPTIBLE
from fleet.costs.rightsizing.sizing.losing import losses_of
from fleet.costs.rightsizing.sizing.speed import relative_speed
from fleet.providers.base import Market

# A GPU does not work every second, however full its queue is.
FULL = 0.9
# Whatever it saves, who waits more than three times as long does other work.
LEAST_SPEED = 1 / 3
# What is less than the next change of a price is not worth a move.
LEAST_SAVING = Decimal("0.05")
MOST_OTHERS = 2
COMMITTED = Market.RESERVED
ORDER = {why: place for place, why in enumerate(Why)}


def right_size(machine: Measured, candidates: Iterable[Candidate], *, now: datetime) -> Verdict:
    """`candidates`: of anything that can be rented; what costs more or does not fit is passed over."""
    if (missing := lacking(machine, now=now)) is not None:
        return missing
    options, nearest = [], LeftAlone(Why.NOTHING_CHEAPER)
    for candidate in candidates:
        found = consider(machine, candidate)
        if isinstance(found, Option):
            options.append(found)
        elif found is not None and ORDER[found.why] > ORDER[nearest.why]:
            nearest = found
    return suggest(machine, options) if options else nearest


def consider(machine: Measured, offer: Candidate) -> Option | LeftAlone | None:
    """None: it is no cheaper, so that nothing needs to be said of it."""
    assert machine.price_per_hour is not None
    if offer.price_per_hour >= machine.price_per_hour:
        return None
    for check in CHECKS:
        if (short := check(machine, offer)) is not None:
            return short
    return worth_it(machine, offer)


def worth_it(machine: Measured, offer: Candidate) -> Option | LeftAlone:
    speed = relative_speed(machine.gpu_model, offer.gpu_model)
    if speed is None:
        return LeftAlone(Why.SPEED_UNKNOWN)
    if speed < LEAST_SPEED:
        return LeftAlone(Why.SLOWER, {"percent": round(100 * speed)})
    hours = hours_after(machine, offer, speed)
    if hours is None:
        return LeftAlone(Why.BUSY, {"percent": round(100 * (machine.utilization_mean or 0))})
    return priced(machine, offer, speed, hours)


def hours_after(machine: Measured, offer: Candidate, speed: float) -> Decimal | None:
    """For how many hours a month the same work needs it; None: more than a month has, or more than requests can wait for.

    A slower GPU is busy for longer. Until it is full it takes no more hours than today; beyond, work that is not done comes on top.
    """
    before = machine.hours_per_month
    full = FULL * speed
    if machine.serves and speed < 1 and (machine.utilization_p95 or 0) > full:
        return None
    stretch = max(1.0, (machine.utilization_mean or 0) / full) if speed < 1 else 1.0
    hours = (before * Decimal(str(stretch))).quantize(Decimal("0.1"))
    if hours > MONTH_HOURS:
        return None
    return MONTH_HOURS if offer.market == COMMITTED else hours


def priced(machine: Measured, offer: Candidate, speed: float, hours: Decimal) -> Option | LeftAlone:
    assert machine.price_per_hour is not None
    before = machine.hours_per_month
    option = Option(
        kind=kind_of(machine, offer),
        candidate=offer,
        hours_before=before,
        hours_after=hours,
        cost_before=machine.price_per_hour * before,
        cost_after=offer.price_per_hour * hours,
        speed=speed,
        losses=losses_of(machine, offer, speed=speed, hours=hours),
    )
    enough = option.saving > 0 and option.saving >= option.cost_before * LEAST_SAVING
    return option if enough else LeftAlone(Why.SAVES_NOTHING)


def kind_of(machine: Measured, offer: Candidate) -> Kind:
    if offer.gpu_model != machine.gpu_model:
        return Kind.SMALLER
    if offer.gpus < machine.gpus:
        return Kind.FEWER
    if offer.market == INTERRUPTIBLE != machine.market:
        return Kind.SPOT
    return Kind.RESERVED if offer.market == COMMITTED != machine.market else Kind.SAME


def suggest(machine: Measured, options: Sequence[Option]) -> Suggestion:
    """At the same provider first, and what can be taken away last; then what saves most. Others: one of each kind and provider."""

    def place(option: Option) -> tuple[bool, bool, Decimal, int]:
        offer = option.candidate
        taken_away = offer.market == INTERRUPTIBLE != machine.market
        return (taken_away, offer.provider != machine.provider, -option.saving, offer.id)

    best, *rest = sorted(options, key=place)
    seen, others = {_sort_of(best)}, []
    for option in rest:
        if _sort_of(option) not in seen and option.saving > best.saving:
            seen.add(_sort_of(option))
            others.append(option)
    return Suggestion(best, tuple(others[:MOST_OTHERS]))


def _sort_of(option: Option) -> tuple[Kind, str]:
    return option.kind, option.candidate.provider
