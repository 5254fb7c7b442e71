"""What the ledger counted of an account, as it is compared with bills: amounts of intervals, and the times that are in doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.costs.bills.matching import STEP, ZERO, Counted, Doubt, Key, MeterClass
from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.charges import Rules, amount_of, months_between
from fleet.costs.ledger.intervals import Meter, Price, Unit
from fleet.inventory.models import ProviderAccount

CLASSES: Mapping[str, MeterClass] = {
    Meter.COMPUTE: MeterClass.COMPUTE,
    Meter.MINIMUM: MeterClass.COMPUTE,
    Meter.DISK_RUNNING: MeterClass.DISK,
    Meter.DISK_STOPPED: MeterClass.DISK,
    Meter.NETWORK_VOLUME: MeterClass.NETWORK_VOLUME,
    Meter.EGRESS: MeterClass.EGRESS,
    Meter.ADDRESS: MeterClass.ADDRESS,
    Meter.LICENCE: MeterClass.LICENCE,
    Meter.COMMITMENT: MeterClass.COMMITMENT,
}
# Readings come every minute or so: an edge that is off by more was not looked at meanwhile.
SILENCE = timedelta(minutes=30)
MONTH_UNITS = {Unit.GB_MONTH.value, Unit.MONTH.value}
# convert(amount, from, day) -> (amount, currency): the same again where there is no rate.
Convert = Callable[[Decimal, str, datetime], tuple[Decimal, str]]


@dataclass(frozen=True, slots=True)
class Tally:
    counted: list[Counted]
    doubts: list[Doubt]


def tally(*, account: ProviderAccount, start: datetime, end: datetime, convert: Convert) -> Tally:
    """Of [start, end). One query."""
    rows = (
        LedgerInterval.objects.filter(meter__account=account, period__overlap=(start, end))
        .exclude(meter__kind=Meter.NOTHING)
        .select_related("meter")
        .order_by("meter_id", "period")
    )
    found = Tally([], [])
    rates: dict[int, Decimal] = {}
    silences: list[LedgerInterval] = []
    for row in rows:
        if row.meter.kind == Meter.UNKNOWN:
            silences.append(row)
            continue
        if row.meter.kind == Meter.COMPUTE and row.unit_price is not None:
            rates[row.meter.instance_id or 0] = priced(row)
        found.counted.extend(counted_of(row, start, end, convert))
        found.doubts.extend(edge_doubts(row, convert))
    found.doubts.extend(silent_doubts(silences, rates, start, end))
    return found


def counted_of(row: LedgerInterval, start: datetime, end: datetime, convert: Convert) -> Iterator[Counted]:
    """Month by month, as storage is reckoned."""
    first, last = max(row.period.lower, start), min(row.period.upper or end, end)
    for month, lower, upper in months_between(first, last):
        amount = amount_between(row, lower, upper, month)
        value, currency = convert(amount or ZERO, row.currency, lower)
        yield Counted(
            key=key_of(row, currency),
            start=lower,
            end=upper,
            amount=value.quantize(STEP),
            rate=convert(priced(row), row.currency, lower)[0] if row.unit == Unit.HOUR and amount is not None else None,
            runs=int(row.meter.kind == Meter.COMPUTE and lower == row.period.lower),
            unpriced=amount is None,
            converted=currency != row.currency,
        )


def amount_between(row: LedgerInterval, start: datetime, end: datetime, month: datetime) -> Decimal | None:
    """None: charged at a price that nobody told."""
    if row.unit_price is None:
        return None
    seconds = round((end - start).total_seconds())
    if row.unit == Unit.ONCE:
        whole = Decimal(round(((row.period.upper or end) - row.period.lower).total_seconds()))
        return priced(row) * seconds / whole
    price = Price(Unit(row.unit), row.unit_price, row.quantity, row.currency)
    return amount_of(price, seconds, month, Rules())


def key_of(row: LedgerInterval, currency: str) -> Key:
    machine = row.meter.instance_id or 0
    meter = CLASSES.get(row.meter.kind, MeterClass.OTHER)
    return Key(machine, "" if machine else row.meter.resource, meter, currency)


def priced(row: LedgerInterval) -> Decimal:
    """Of one unit of time, or of all of it where it is charged once."""
    price: Decimal = row.unit_price or ZERO
    return price * row.quantity


def edge_doubts(row: LedgerInterval, convert: Convert) -> Iterator[Doubt]:
    """Around a start and an end: so much earlier or later may it have been."""
    if row.unit != Unit.HOUR or row.unit_price is None:
        return
    widths = ((row.period.lower, row.start_half_width_seconds), (row.period.upper, row.end_half_width_seconds))
    for at, seconds in widths:
        if at is not None and seconds:
            half = timedelta(seconds=seconds)
            rate, currency = convert(priced(row), row.currency, at)
            yield Doubt(key_of(row, currency), at - half, at + half, rate, silent=half > SILENCE)


def silent_doubts(
    rows: Iterable[LedgerInterval], rates: Mapping[int, Decimal], start: datetime, end: datetime
) -> Iterator[Doubt]:
    """Times in which nobody could tell what a machine was charged, at what it costs otherwise."""
    for row in rows:
        machine = row.meter.instance_id or 0
        if machine in rates:
            key = Key(machine, "", MeterClass.COMPUTE, row.currency)
            lower, upper = max(row.period.lower, start), min(row.period.upper or end, end)
            yield Doubt(key, lower, upper, rates[machine], silent=True)
