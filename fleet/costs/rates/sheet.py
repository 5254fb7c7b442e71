"""Exchange rates as CSV: currency,into,day,rate,source. A wrong cell is told with line, column and remedy; nothing is written here."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation

from django.utils.translation import gettext as _

from fleet.inventory.offers.rows import is_currency
from fleet.inventory.offers.sheet import CellError, Fault
from fleet.providers.redact import cut
from fleet.teams.fields import one_line
from fleet.teams.pasted import MAX_BYTES

MAX_ROWS = 20_000
MOST_SOURCE = 120
COLUMNS = ("currency", "into", "day", "rate")
# What the column of the database holds.
RATE_STEP = Decimal("1e-10")
HIGHEST_RATE = Decimal(10) ** 9


@dataclass(frozen=True, slots=True)
class Rate:
    """One `currency` is `rate` of `into`, from `day` on."""

    currency: str
    into: str
    day: date
    rate: Decimal
    source: str = ""

    @property
    def key(self) -> tuple[str, str, date]:
        return self.currency, self.into, self.day


@dataclass(slots=True)
class RateSheet:
    """With faults nothing is to be imported."""

    rates: list[Rate] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def read_rates(given: str, *, latest: date, source: str = "") -> RateSheet:
    """`latest`: the last day that a rate may be of. `source`: of rows that name none."""
    if len(given.encode()) > MAX_BYTES:
        return RateSheet(faults=[Fault(0, "", _("The file is larger than 2 MB. Import it in parts."))])
    reader = csv.DictReader(io.StringIO(given.lstrip("\ufeff"), newline=""), restval="")
    sheet = RateSheet()
    try:
        columns = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = columns
        if missing := [name for name in COLUMNS if name not in columns]:
            text = _("The first line must name the columns currency,into,day,rate,source. Missing: %(missing)s.")
            return RateSheet(faults=[Fault(1, "", text % {"missing": ", ".join(missing)})])
        read_rows(reader, sheet, latest=latest, source=source)
    except csv.Error as error:
        text = _("This line is no CSV (%(error)s). Save the list as CSV with commas.")
        sheet.faults.append(Fault(reader.line_num + 1, "", text % {"error": error}))
    if not sheet.rates and not sheet.faults:
        sheet.faults.append(Fault(0, "", _("The file has no rate. Write one a line below the names of the columns.")))
    return sheet


def read_rows(reader: csv.DictReader[str], sheet: RateSheet, *, latest: date, source: str) -> None:
    lines: dict[tuple[str, str, date], int] = {}
    for number, cells in enumerate(reader, start=1):
        line = reader.line_num
        if number > MAX_ROWS:
            text = _("The file has more than %(most)d rows. Import it in parts.")
            sheet.faults.append(Fault(line, "", text % {"most": MAX_ROWS}))
            return
        try:
            rate = rate_of(cells, latest=latest, source=source)
            refuse_twin(lines.setdefault(rate.key, line), line)
        except CellError as error:
            sheet.faults.append(Fault(line, error.column, error.text))
        else:
            sheet.rates.append(rate)


def refuse_twin(first: int, line: int) -> None:
    if first != line:
        text = _("Line %(line)d has a rate of this day, too. Keep one of them.")
        raise CellError("day", text % {"line": first})


def rate_of(cells: Mapping[str, str], *, latest: date, source: str) -> Rate:
    """Raises CellError."""
    if None in cells:  # more cells than columns
        raise CellError("", _("More cells than columns. Put texts that have commas in quotes."))
    currency, into = currency_of(cells["currency"], "currency"), currency_of(cells["into"], "into")
    if currency == into:
        raise CellError("into", _("A currency is always 1 of itself. Name two of them, or drop the row."))
    return Rate(
        currency,
        into,
        day_of(cells["day"], latest=latest),
        number_of(cells["rate"]),
        one_line(cells.get("source") or source)[:MOST_SOURCE],
    )


def currency_of(cell: str, column: str) -> str:
    word = cell.strip().upper()
    if not is_currency(word):
        text = _("“%(cell)s” is no currency. Write its three letters, as CNY.")
        raise CellError(column, text % {"cell": cut(cell, 40)})
    return word


def day_of(cell: str, *, latest: date) -> date:
    try:
        day = date.fromisoformat(cell.strip())
    except ValueError:
        text = _("“%(cell)s” is no day. Write it as 2026-11-30.")
        raise CellError("day", text % {"cell": cut(cell, 40)}) from None
    if day > latest:
        raise CellError("day", _("This day is still to come. Give the day from which the rate holds."))
    return day


def number_of(cell: str) -> Decimal:
    try:
        number = Decimal(cell.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not RATE_STEP <= number <= HIGHEST_RATE:
        text = _("“%(cell)s” is no rate. Write how much of the second currency one of the first is, as 0.1389.")
        raise CellError("rate", text % {"cell": cut(cell, 40)})
    return number.quantize(RATE_STEP)
