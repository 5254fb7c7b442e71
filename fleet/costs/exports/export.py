"""A month of a team's money as a file: which there are, and how one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.utils.translation import gettext as _

from fleet.costs.exports.adjustments import adjustment_rows
from fleet.costs.exports.charges import Rates, days_of
from fleet.costs.exports.columns import Cell, Column, Row
from fleet.costs.exports.files import csv_pieces, parquet_pieces
from fleet.costs.exports.focus import rows_of
from fleet.costs.exports.focus_columns import DEFAULT_VERSION, DRAFT_NAMES, VERSIONS, columns_of
from fleet.costs.exports.plain import BY_STATE, MACHINE_DAYS, machine_day_row, state_rows
from fleet.costs.month import Month
from fleet.downloads import MEDIA_TYPES
from fleet.teams.models import Team

# The word asked for, and the kind of file that it is.
FORMATS = {"csv": "csv", "parquet": "parquet", "focus": "csv", "focus-parquet": "parquet"}
SWITCHES = {"": False, "0": False, "1": True}


class ExportError(ValueError):
    """What was asked for cannot be given; `field` names the parameter, the text says what may stand there."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Wish:
    """What to write. `version`: of FOCUS. `bom`: for Excel; of CSV files only."""

    month: Month
    format: str = "csv"
    version: str = DEFAULT_VERSION
    bom: bool = False

    @classmethod
    def of(cls, asked: Mapping[str, str], *, team: Team, now: datetime) -> Wish:
        """From `month`, `format`, `version` and `bom`, each of which may be missing. Raises ExportError."""
        month = Month.of(team, now=now, name=asked.get("month", ""))
        if asked.get("month") and str(month) != asked["month"]:
            raise ExportError("month", _("Give a month as YYYY-MM, %(month)s at the latest.") % {"month": month})
        return cls(
            month,
            one_of("format", asked, FORMATS, "csv"),
            one_of("version", asked, VERSIONS, DEFAULT_VERSION),
            SWITCHES[one_of("bom", asked, SWITCHES, "")],
        )


def one_of(name: str, asked: Mapping[str, str], known: Collection[str], default: str) -> str:
    word = asked.get(name, default)
    if word not in known:
        raise ExportError(name, _("Give one of %(known)s.") % {"known": ", ".join(one for one in known if one)})
    return word


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    media_type: str
    pieces: Iterator[bytes]


def open_export(team: Team, wish: Wish) -> Export:
    """Nothing is read before the first piece is taken; then one day after the other is."""
    kind = FORMATS[wish.format]
    columns, rows = WRITERS[wish.format](team, wish)
    is_focus = wish.format.startswith("focus")
    what = f"focus-{wish.version}" if is_focus else "costs"
    notes = {"team": team.slug, "month": str(wish.month), "time_zone": team.time_zone, "generator": "Rackrent"}
    if is_focus:
        notes["FocusVersion"] = wish.version
    written = csv_pieces(columns, rows, bom=wish.bom) if kind == "csv" else parquet_pieces(columns, rows, notes=notes)
    return Export(f"rackrent-{team.slug}-{what}-{wish.month}.{kind}", MEDIA_TYPES[kind], written)


def _by_state(team: Team, wish: Wish) -> tuple[Sequence[Column], Iterator[Row]]:
    rates = Rates(team, wish.month)
    charges = (charge for day in days_of(team, wish.month) for charge in day.charges)
    return BY_STATE, (row for charge in charges for row in state_rows(charge, rates))


def _machine_days(team: Team, wish: Wish) -> tuple[Sequence[Column], Iterator[Row]]:
    rates = Rates(team, wish.month)
    charges = (charge for day in days_of(team, wish.month) for charge in day.charges)
    return MACHINE_DAYS, (machine_day_row(charge, rates) for charge in charges)


def _focus(team: Team, wish: Wish) -> tuple[Sequence[Column], Iterator[Row]]:
    rows: Iterator[Row] = focus_rows(team, wish.month)
    if wish.version == "1.0":
        rows = ({**row, **{draft: row.get(name) for draft, name in DRAFT_NAMES.items()}} for row in rows)
    return columns_of(wish.version), rows


WRITERS: Mapping[str, Callable[[Team, Wish], tuple[Sequence[Column], Iterator[Row]]]] = {
    "csv": _by_state,
    "parquet": _machine_days,
    "focus": _focus,
    "focus-parquet": _focus,
}


def focus_rows(team: Team, month: Month) -> Iterator[Row]:
    rates = Rates(team, month)
    for day in days_of(team, month):
        for rows in (rows_of(day, month), adjustment_rows(day, month)):
            for row in rows:
                yield {**row, **_converted(row, rates, day.day)}


def _converted(row: Row, rates: Rates, day: date) -> dict[str, Cell]:
    amount, currency = row["BilledCost"], row["BillingCurrency"]
    assert isinstance(amount, Decimal)
    assert isinstance(currency, str)
    known = rates.convert(amount, currency, day)
    if known is None:
        return {}
    value, used = known
    return {"x_ConvertedCost": value, "x_ConvertedCurrency": rates.into, "x_ExchangeRate": used.rate if used else None}
