"""What an hour of a machine cost at some time, by the ledger, less what it costs while it is stopped. Pure.

Money is in the currency of each price and, where a rate is known for the day, in the team's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from fleet.idle.dryrun.simulate import Stop

HOUR_SECONDS = 3600
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Priced:
    """[start, end) at this price an hour of the whole machine; end None: it goes on. None: nobody told the price."""

    start: datetime
    end: datetime | None
    per_hour: Decimal | None
    currency: str


@dataclass(frozen=True, slots=True)
class Tariff:
    """Of one machine. `stopped_per_hour`: what it costs while stopped, None: unknown. `prices` do not overlap."""

    prices: Sequence[Priced]
    stopped_per_hour: Decimal | None
    currency: str


@dataclass(frozen=True, slots=True)
class Rates:
    """Factors into the team's currency by currency and day on the team's calendar."""

    currency: str
    zone: ZoneInfo
    factors: Mapping[tuple[str, date], Decimal]

    def into(self, amount: Decimal, currency: str, at: datetime) -> Decimal | None:
        if currency == self.currency:
            return amount
        factor = self.factors.get((currency, at.astimezone(self.zone).date()))
        return None if factor is None else amount * factor


@dataclass(frozen=True, slots=True)
class Money:
    """Of one stop in the team's currency, None: some price or rate is not known. `harm`: what a wrong one cost."""

    saved: Decimal | None
    harm: Decimal | None

    @property
    def net(self) -> Decimal | None:
        return None if self.saved is None or self.harm is None else self.saved - self.harm


def money_of(stop: Stop, tariff: Tariff | None, rates: Rates, *, wrong_stop_gpu_hours: float) -> Money:
    if tariff is None:
        return Money(None, None if stop.is_wrong else ZERO)
    saved = saved_between(tariff, rates, stop.at, stop.until)
    return Money(saved, harm_of(stop, tariff, rates, wrong_stop_gpu_hours) if stop.is_wrong else ZERO)


def saved_between(tariff: Tariff, rates: Rates, start: datetime, end: datetime) -> Decimal | None:
    """Time that was not charged saves nothing."""
    found = ZERO
    for price in overlapping(tariff.prices, start, end):
        since, until = max(price.start, start), min(price.end or end, end)
        less = difference(price, tariff)
        part = None if less is None else rates.into(less * hours_in(until - since), price.currency, since)
        if part is None:
            return None
        found += part
    return found


def difference(price: Priced, tariff: Tariff) -> Decimal | None:
    """A machine that costs more while it is stopped saves nothing."""
    if price.per_hour is None or tariff.stopped_per_hour is None:
        return None
    if tariff.stopped_per_hour and tariff.currency != price.currency:
        return None
    return max(price.per_hour - tariff.stopped_per_hour, ZERO)


def harm_of(stop: Stop, tariff: Tariff, rates: Rates, gpu_hours: float) -> Decimal | None:
    """GPU-hours at the price that a GPU of the machine had when it was stopped."""
    price = next(iter(overlapping(tariff.prices, stop.at, stop.at + timedelta(seconds=1))), None)
    if price is None or price.per_hour is None or not stop.gpus:
        return None
    return rates.into(price.per_hour / stop.gpus * Decimal(str(gpu_hours)), price.currency, stop.at)


def overlapping(prices: Iterable[Priced], start: datetime, end: datetime) -> list[Priced]:
    return [one for one in prices if one.start < end and (one.end is None or one.end > start)]


def hours_in(length: timedelta) -> Decimal:
    return Decimal(str(length.total_seconds())) / HOUR_SECONDS
