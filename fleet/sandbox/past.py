"""What the provider would have shown of its machines before the sandbox was born. Pure; times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from fleet.sandbox.cast import (
    EARLIER_PRICES,
    ENDED_DAYS,
    MEMBERS,
    OFFERS,
    PAST_MEMBERS,
    YUAN_PRICES,
    Member,
    seed_of,
    storage_price_per_hour,
)
from fleet.sandbox.noise import scatter
from fleet.sandbox.patterns import DAY, HOUR
from fleet.sandbox.rentals import PASSING, runs_of

# As far back as anybody looked; what began before is seen from here on.
KNOWN_SECONDS = 45 * DAY
SPOT_HOLDS_SECONDS = 17 * HOUR
SPOT_SWING = 0.3
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Turn:
    """From `at` on the provider shows this of a machine. `started_at` and `stopped_at` are its own times."""

    at: float
    status: str
    price_per_hour: Decimal
    started_at: float
    stopped_at: float | None = None


def former_members() -> list[Member]:
    """Those with a past: rented before the birth, whether or not they are still there."""
    return [member for member in (*MEMBERS, *PAST_MEMBERS) if member.status not in PASSING]


def turns_of(member: Member, born_at: float) -> list[Turn]:
    """All that changed of it until the birth, in order. The last one is what the first listing shows."""
    prices = list(prices_of(member, born_at))
    found = [turn for start, end in runs_of(member, born_at) for turn in _turns_of_run(member, start, end, prices)]
    seen_from = born_at - KNOWN_SECONDS
    before = [turn for turn in found if turn.at <= seen_from]
    return before[-1:] + [turn for turn in found if turn.at > seen_from]


def _turns_of_run(
    member: Member, start: float, end: float | None, prices: list[tuple[float, Decimal]]
) -> Iterator[Turn]:
    yield Turn(start, "running", price_at(prices, start), start)
    for since, price in prices:
        if start < since and (end is None or since < end):
            yield Turn(since, "running", price, start)
    if end is not None:
        # Only the last run of a machine that is gone ended for good.
        status = "terminated" if member.id in ENDED_DAYS else "stopped"
        yield Turn(end, status, price_at(prices, end), start, end)


def price_at(prices: list[tuple[float, Decimal]], at: float) -> Decimal:
    return next(price for since, price in reversed(prices) if since <= at)


def prices_of(member: Member, born_at: float) -> Iterator[tuple[float, Decimal]]:
    """(since, price of the whole machine an hour), in order, from the beginning of time to today's price."""
    offer = OFFERS[member.offer]
    if member.id in YUAN_PRICES:
        yield float("-inf"), YUAN_PRICES[member.id][0] * offer.gpu_count
        return
    if member.market == "spot" and offer.spot_gpu_price is not None:
        yield from _spot_prices(member, offer.spot_gpu_price, offer.gpu_count, born_at)
        return
    now = offer.gpu_price * offer.gpu_count
    if member.offer in EARLIER_PRICES and member.market == "on_demand":
        until_days, before = EARLIER_PRICES[member.offer]
        yield float("-inf"), before * offer.gpu_count
        yield born_at - until_days * DAY, now
    else:
        yield float("-inf"), now


def _spot_prices(member: Member, today: Decimal, gpu_count: int, born_at: float) -> Iterator[tuple[float, Decimal]]:
    """What was free moved the price every so many hours; the last move was to what it is now."""
    moves = int(min(member.age_days * DAY, KNOWN_SECONDS) // SPOT_HOLDS_SECONDS) + 1
    for back in range(moves, 0, -1):
        factor = 1 + SPOT_SWING * (scatter(back, seed_of(member.id)) - 0.5)
        since = float("-inf") if back == moves else born_at - (back + 0.5) * SPOT_HOLDS_SECONDS
        yield since, (today * Decimal(str(round(factor, 3)))).quantize(CENT) * gpu_count
    yield born_at - 0.5 * SPOT_HOLDS_SECONDS, today * gpu_count


def currency_of(member: Member) -> str:
    return "CNY" if member.id in YUAN_PRICES else "USD"


def storage_price_of(member: Member) -> Decimal:
    """Of its disk, an hour."""
    if member.id in YUAN_PRICES:
        return storage_price_per_hour(member.disk_gb, YUAN_PRICES[member.id][1])
    return storage_price_per_hour(member.disk_gb)
