"""A file as the lines of a bill, all of them or none: with one fault, nothing of it is to be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from fleet.costs.bills.files import focus
from fleet.costs.bills.files.cells import (
    CellError,
    Cells,
    Fault,
    amount_of,
    currency_of,
    line_of_text,
    number_of,
    period_of,
)
from fleet.costs.bills.files.columns import Layout, kind_of, layout_of
from fleet.costs.bills.files.tables import FileError, Table, table_of
from fleet.providers.base import BilledCharge, Money
from fleet.providers.bills import LineIds

# More faults nobody reads at once.
MOST_FAULTS = 50
ReadRow = Callable[[Cells], BilledCharge]


@dataclass(frozen=True, slots=True)
class About:
    """What a file does not say of itself. `columns`: ours -> the file's, where somebody assigned them."""

    currency: str
    zone: ZoneInfo
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Sheet:
    """`layout`: "focus", "own", a preset's name, "assigned"; "" where the columns are not known: they are to be assigned."""

    layout: str = ""
    columns: tuple[str, ...] = ()
    charges: list[BilledCharge] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def is_focus(self) -> bool:
        return self.layout == "focus"


def read_bill(content: bytes, about: About) -> Sheet:
    sheet = Sheet()
    try:
        table = table_of(content)
        sheet.columns = tuple(table.columns)
        reader = reader_of(table, about, sheet)
        if reader is not None:
            sheet.charges = list(charges_of(table, reader, sheet.faults))
    except FileError as error:
        sheet.faults.append(error.fault)
    if sheet.layout and not sheet.charges and not sheet.faults:
        sheet.faults.append(Fault(0, "", _("The file has no lines below its first one.")))
    if sheet.faults:
        sheet.charges = []
    return sheet


def reader_of(table: Table, about: About, sheet: Sheet) -> ReadRow | None:
    """None, with the reason in the sheet: nobody can tell which column is what."""
    ids = LineIds()
    if focus.is_focus(table.columns):
        sheet.layout = "focus"
        return lambda row: focus.charge_of(row, ids)
    if lacking := focus.missing_column(table.columns):
        raise FileError(_("The column %(name)s of FOCUS is missing.") % {"name": lacking}, 1)
    layout = layout_of(table.columns, about.columns)
    if layout is None:
        return None
    sheet.layout = layout.name
    return lambda row: charge_of(row, layout, about, ids)


def charges_of(table: Table, read: ReadRow, faults: list[Fault]) -> Iterator[BilledCharge]:
    for line, row in table.rows:
        try:
            yield read(row)
        except CellError as error:
            faults.append(Fault(line, error.column, error.text))
            if len(faults) >= MOST_FAULTS:
                return


def charge_of(row: Cells, layout: Layout, about: About, ids: LineIds) -> BilledCharge:
    """Raises CellError with the name of the file's column."""
    cells = layout.cells(row)
    try:
        return read_cells(cells, layout, about, ids)
    except CellError as error:
        raise CellError(layout.columns.get(error.column, error.column), error.text) from None


def read_cells(cells: Cells, layout: Layout, about: About, ids: LineIds) -> BilledCharge:
    start, end = period_of(cells, "start", "end", about.zone)
    word, quantity = cells.get("kind", ""), cells.get("quantity", "")
    machine, resource = cells.get("machine", ""), cells.get("resource", "")
    description = line_of_text(cells.get("description", ""), 300)
    own_id = line_of_text(cells.get("line_id", ""), 200)
    return BilledCharge(
        line_id=ids.of(own_id) if own_id else ids.of(machine, resource, word, start, end, description),
        kind=kind_of(word, layout),
        raw_kind=line_of_text(word, 200),
        start=start,
        end=end,
        amount=Money(amount_of(cells.get("amount", ""), "amount"), currency(cells, about)),
        external_id=line_of_text(machine, 200),
        resource=line_of_text(resource, 200),
        quantity=number_of(quantity, "quantity") if quantity else None,
        unit=line_of_text(cells.get("unit", ""), 60),
        description=description,
    )


def currency(cells: Cells, about: About) -> str:
    return currency_of(cells["currency"], "currency") if cells.get("currency") else about.currency
