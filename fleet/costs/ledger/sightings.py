"""What was seen of machines, as the ledger is made from it. Pure; read from the observation log or from a file that it exported."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from fleet.providers.base import Billing, Market

COLUMNS = (
    "seen_at",
    "provider_time",
    "machine",
    "market",
    "state",
    "billing",
    "quantity",
    "price_per_hour",
    "storage_price_per_month",
    "storage_gb",
    "currency",
)
# At the end, and may be missing: providers that price disks by the hour and machine.
HOURLY_STORAGE = "storage_price_per_hour"
MOST_NAME = 200
W = TypeVar("W", Billing, Market)
HIGHEST = Decimal(10) ** 9


@dataclass(frozen=True, slots=True)
class Sighting:
    """One machine as one listing showed it. None = the provider did not say, which is not free.

    `provider_time`: when, by the provider's clock, the present state began. `price_per_hour`: of one of `quantity`. Storage is priced for
    one GB and month, and charged for `storage_gb`; or all of it an hour, where `storage_price_per_hour` is told. While the machine runs,
    what is told of storage is charged beside `price_per_hour`.
    """

    seen_at: datetime
    machine: str
    state: str
    billing: Billing
    provider_time: datetime | None = None
    market: Market = Market.UNKNOWN
    quantity: Decimal = Decimal(1)
    price_per_hour: Decimal | None = None
    storage_price_per_month: Decimal | None = None
    storage_gb: Decimal | None = None
    currency: str = "USD"
    storage_price_per_hour: Decimal | None = None


class SightingError(ValueError):
    """Names the line and the column of a file that cannot be used, and what belongs there."""


def read_sightings(lines: Iterable[str]) -> list[Sighting]:
    """Of a CSV with a first line of COLUMNS; HOURLY_STORAGE is read too, more columns are left alone. In the order of time. Raises SightingError."""
    reader = csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise SightingError(f"line 1: the column {missing[0]} is missing. The first line names {','.join(COLUMNS)}.")
    return sorted(_rows(reader), key=lambda one: (one.seen_at, one.machine))


def _rows(reader: csv.DictReader[str]) -> Iterator[Sighting]:
    for row in reader:
        try:
            yield sighting_of(row)
        except SightingError as error:
            raise SightingError(f"line {reader.line_num}: {error}") from None


def sighting_of(row: Mapping[str, str | None]) -> Sighting:
    cells = {name: (row.get(name) or "").strip() for name in (*COLUMNS, HOURLY_STORAGE)}
    seen_at = moment(cells, "seen_at")
    if seen_at is None:
        raise SightingError("seen_at is empty; give a time as 2026-11-30T08:00:00Z")
    if not 1 <= len(cells["machine"]) <= MOST_NAME:
        raise SightingError(f"machine must be a name of 1 to {MOST_NAME} characters")
    return Sighting(
        seen_at=seen_at,
        machine=cells["machine"],
        state=cells["state"],
        billing=word(Billing, cells, "billing"),
        provider_time=moment(cells, "provider_time"),
        market=word(Market, cells, "market") if cells["market"] else Market.UNKNOWN,
        quantity=number(cells, "quantity") or Decimal(1),
        price_per_hour=number(cells, "price_per_hour"),
        storage_price_per_month=number(cells, "storage_price_per_month"),
        storage_gb=number(cells, "storage_gb"),
        currency=currency(cells),
        storage_price_per_hour=number(cells, HOURLY_STORAGE),
    )


def moment(cells: Mapping[str, str], name: str) -> datetime | None:
    if not cells[name]:
        return None
    try:
        value = datetime.fromisoformat(cells[name])
    except ValueError:
        value = None
    if value is None or value.tzinfo is None:
        raise SightingError(f"{name} is {cells[name][:40]!r}; give a time with its zone, as 2026-11-30T08:00:00Z")
    return value.astimezone(UTC)


def word(kind: type[W], cells: Mapping[str, str], name: str) -> W:
    try:
        return kind(cells[name])
    except ValueError:
        raise SightingError(f"{name} is {cells[name][:40]!r}; it is one of {', '.join(kind)}") from None


def number(cells: Mapping[str, str], name: str) -> Decimal | None:
    if not cells[name]:
        return None
    try:
        value = Decimal(cells[name])
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not 0 <= value <= HIGHEST:
        raise SightingError(f"{name} is {cells[name][:40]!r}; give a number from 0 to {HIGHEST:f}")
    return value


def currency(cells: Mapping[str, str]) -> str:
    code = cells["currency"]
    if len(code) != 3 or not (code.isascii() and code.isupper()):
        raise SightingError(f"currency is {code[:20]!r}; give its three letters, as USD")
    return code
