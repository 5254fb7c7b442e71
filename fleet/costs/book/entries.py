"""One interval as a row of `ledger_interval`, apart from the database: what the fold makes and what is stored are compared as these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.intervals import EdgeSource, Interval, Meter, Price, PriceSource, Unit

# Made from observations. Other kinds are typed or imported, and no rebuild touches them.
BUILT = (
    Meter.COMPUTE,
    Meter.DISK_RUNNING,
    Meter.DISK_STOPPED,
    Meter.MINIMUM,
    Meter.NOTHING,
    Meter.UNKNOWN,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Columns of LedgerInterval and of its meter. end None: it goes on."""

    kind: str
    resource: str
    start: datetime
    end: datetime | None
    unit: str
    unit_price: Decimal | None
    quantity: Decimal
    currency: str
    market: str
    price_source: str
    seen_at: datetime
    start_source: str
    start_half_width_seconds: int
    end_half_width_seconds: int
    run: int

    @property
    def place(self) -> tuple[str, str, datetime]:
        """No two of a machine share it."""
        return self.kind, self.resource, self.start


@dataclass(frozen=True, slots=True)
class Stored:
    pk: int
    entry: Entry


def entry_of(one: Interval, *, typed: bool) -> Entry:
    """`typed`: of a machine that people describe; its times and prices are theirs."""
    assert one.seen_at is not None
    return Entry(
        kind=one.meter.value,
        # Each run has a minimum of its own, which may reach into the next run.
        resource=f"run {one.run}" if one.meter is Meter.MINIMUM else "",
        start=one.start,
        end=one.end,
        unit=one.price.unit.value,
        unit_price=one.price.unit_price,
        quantity=one.price.quantity,
        currency=one.price.currency,
        market=one.market,
        price_source=price_source(one.price, typed=typed).value,
        seen_at=one.seen_at,
        start_source=(EdgeSource.TYPED if typed else one.start_source).value,
        start_half_width_seconds=math.ceil(one.start_width.total_seconds()),
        end_half_width_seconds=math.ceil(one.end_width.total_seconds()),
        run=one.run,
    )


def price_source(price: Price, *, typed: bool) -> PriceSource:
    if price.unit_price is None:
        return PriceSource.UNKNOWN
    return PriceSource.TYPED if typed else PriceSource.LISTING


def interval_of(machine: str, entry: Entry) -> Interval:
    return Interval(
        machine,
        Meter(entry.kind),
        Price(Unit(entry.unit), entry.unit_price, entry.quantity, entry.currency),
        entry.start,
        entry.end,
        start_width=timedelta(seconds=entry.start_half_width_seconds),
        end_width=timedelta(seconds=entry.end_half_width_seconds),
        start_source=EdgeSource(entry.start_source),
        seen_at=entry.seen_at,
        market=entry.market,
        run=entry.run,
    )


def stored_of(row: LedgerInterval) -> Stored:
    """Of a row with its meter."""
    entry = Entry(
        kind=row.meter.kind,
        resource=row.meter.resource,
        start=row.period.lower,
        end=row.period.upper,
        unit=row.unit,
        unit_price=row.unit_price,
        quantity=row.quantity,
        currency=row.currency,
        market=row.market,
        price_source=row.price_source,
        seen_at=row.seen_at,
        start_source=row.start_source,
        start_half_width_seconds=row.start_half_width_seconds,
        end_half_width_seconds=row.end_half_width_seconds,
        run=row.run,
    )
    return Stored(row.pk, entry)
