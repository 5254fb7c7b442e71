"""What columns of a file hold, and how a cell of each kind is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

from fleet.spreadsheets import disarmed

if TYPE_CHECKING:
    import pyarrow as pa

Json = Mapping[str, object]
Cell = str | Decimal | float | int | bool | date | datetime | Json | None
Row = Mapping[str, Cell]


class Kind(Enum):
    """MONEY and UNIT_PRICE: 14 digits after the point, as the ledger has them. QUANTITY: 9. JSON: an object, as text."""

    TEXT = "text"
    MONEY = "money"
    UNIT_PRICE = "unit_price"
    QUANTITY = "quantity"
    SECONDS = "seconds"
    COUNT = "count"
    FLAG = "flag"
    DAY = "day"
    TIME = "time"
    JSON = "json"


DIGITS = {Kind.MONEY: 14, Kind.UNIT_PRICE: 14, Kind.QUANTITY: 9}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind = Kind.TEXT


def to_text(value: Cell) -> str:
    """Empty where there is nothing. Numbers without exponent or group signs, times in UTC, texts that no spreadsheet runs."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    writer = next((write for kind, write in _WRITERS.items() if isinstance(value, kind)), disarmed)
    return writer(value)


def decimal_text(value: Decimal) -> str:
    """With a decimal point always, so that a reader who guesses types takes no column for one of whole numbers."""
    text = f"{value.normalize():f}" if value else "0"
    return text if "." in text else f"{text}.0"


def json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


_WRITERS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    Decimal: decimal_text,
    date: date.isoformat,
    Mapping: json_text,
}


def for_arrow(value: Cell, kind: Kind) -> Cell:
    if isinstance(value, Mapping):
        return json_text(value)
    if isinstance(value, Decimal):
        return value.quantize(Decimal(1).scaleb(-DIGITS[kind]))
    return value


def arrow_schema(columns: Sequence[Column], notes: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    kinds = {
        Kind.TEXT: pa.string(),
        Kind.JSON: pa.string(),
        Kind.SECONDS: pa.float64(),
        Kind.COUNT: pa.int64(),
        Kind.FLAG: pa.bool_(),
        Kind.DAY: pa.date32(),
        Kind.TIME: pa.timestamp("us", tz="UTC"),
        **{kind: pa.decimal128(38, digits) for kind, digits in DIGITS.items()},
    }
    return pa.schema([(one.name, kinds[one.kind]) for one in columns], metadata=dict(notes))
