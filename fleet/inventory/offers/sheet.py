"""Price lists as CSV, in the columns of gpuhunt and of SkyPilot's catalogue. A wrong cell is told with line, column and remedy; nothing is written here."""

from __future__ import annotations

import ast
import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation

from django.utils.translation import gettext as _

from fleet.inventory.listing import MAX_INTEGER, MAX_PRICE, PRICE_STEP, text
from fleet.inventory.offers.models import Offer
from fleet.inventory.offers.rows import Values, key_of, mib, without_twins
from fleet.inventory.offers.table import EMPTY
from fleet.providers.base import Market
from fleet.providers.gpus import canonical
from fleet.providers.redact import cut
from fleet.teams.pasted import MAX_BYTES

MAX_ROWS = 20_000
MAX_CELL = 2_000
GPUHUNT = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot")
SKYPILOT = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region")
# Some of SkyPilot's lists say SizeInMiB and mean GB: no GPU has less than this many MiB.
LEAST_GPU_MIB = 2_000
SPOT_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


@dataclass(frozen=True, slots=True)
class Fault:
    """`line` 0: the file as a whole. `text` says what is wrong and what to write instead."""

    line: int
    column: str
    text: str


class CellError(Exception):
    def __init__(self, column: str, text: str) -> None:
        super().__init__(text)
        self.column, self.text = column, text


@dataclass(frozen=True, slots=True)
class About:
    """What the file does not say of itself. `provider`: for lists without a column of that name."""

    provider: str
    currency: str
    priced_on: date
    origin: str


@dataclass(slots=True)
class Sheet:
    """`without_gpu`: rows of machines without a GPU or with a part of one, which are left out. With faults nothing is to be imported."""

    layout: str = ""
    rows: list[Values] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    without_gpu: int = 0


Cells = Mapping[str, str]


def read_sheet(given: str, about: About) -> Sheet:
    if len(given.encode()) > MAX_BYTES:
        text = _(
            "The file is larger than 2 MB. Keep only the rows with GPUs, or import it in parts under several names."
        )
        return Sheet(faults=[Fault(0, "", text)])
    reader = csv.DictReader(io.StringIO(given.lstrip("﻿"), newline=""), restval="")
    try:
        columns = [name.strip() for name in reader.fieldnames or ()]
    except csv.Error as error:
        return Sheet(faults=[_unreadable(1, error)])
    reader.fieldnames = columns
    layout = _layout(columns)
    if layout is None:
        return Sheet(faults=[Fault(1, "", _unknown_columns(columns))])
    return _read(reader, layout, about)


def _layout(columns: list[str]) -> str | None:
    have = set(columns)
    return next((name for name, needed in (("gpuhunt", GPUHUNT), ("skypilot", SKYPILOT)) if have >= set(needed)), None)


def _unknown_columns(columns: list[str]) -> str:
    """Names what is missing from the layout that comes closest."""
    best = min((GPUHUNT, SKYPILOT), key=lambda needed: len(set(needed) - set(columns)))
    name = "gpuhunt" if best is GPUHUNT else "SkyPilot"
    missing = ", ".join(column for column in best if column not in columns)
    text = _("The first line must name the columns, as %(layout)s does. Missing: %(missing)s.")
    return text % {"layout": name, "missing": missing}


def _read(reader: csv.DictReader[str], layout: str, about: About) -> Sheet:
    sheet = Sheet(layout)
    convert = LAYOUTS[layout]
    try:
        for number, cells in enumerate(reader, start=1):
            if number > MAX_ROWS:
                text = _("The file has more than %(most)d rows. Import it in parts under several names.")
                sheet.faults.append(Fault(reader.line_num, "", text % {"most": MAX_ROWS}))
                break
            _take(sheet, reader.line_num, cells, convert, about)
    except csv.Error as error:
        sheet.faults.append(_unreadable(reader.line_num + 1, error))
    sheet.rows = without_twins(sheet.rows)
    if not sheet.rows and not sheet.faults:
        sheet.faults.append(
            Fault(0, "", _("The file has no row with a GPU and a price. Check that it is the right one."))
        )
    return sheet


def _take(sheet: Sheet, line: int, cells: Cells, convert: Callable[[Cells, About], list[Values]], about: About) -> None:
    if None in cells:  # more cells than columns
        sheet.faults.append(Fault(line, "", _("More cells than columns. Put texts that have commas in quotes.")))
        return
    try:
        rows = convert({name: cell.strip()[:MAX_CELL] for name, cell in cells.items()}, about)
    except CellError as error:
        sheet.faults.append(Fault(line, error.column, error.text))
        return
    sheet.rows += rows
    sheet.without_gpu += not rows


def _unreadable(line: int, error: csv.Error) -> Fault:
    return Fault(line, "", _("This line is no CSV (%(error)s). Save the list as CSV with commas.") % {"error": error})


def gpuhunt_rows(cells: Cells, about: About) -> list[Values]:
    if not cells["gpu_name"] or (gpus := whole(cells, "gpu_count")) == 0:
        return []
    memory = amount(cells, "gpu_memory")
    spot = SPOT_WORDS.get(cells["spot"].lower())
    if spot is None:
        raise CellError("spot", _("“%(cell)s” is neither true nor false.") % {"cell": cut(cells["spot"], 40)})
    disk = amount(cells, "disk_size") if "disk_size" in cells else None
    market = Market.SPOT if spot else Market.ON_DEMAND
    return [
        offer_row(
            about,
            provider=cells.get("provider", ""),
            instance_type=needed(cells, "instance_name"),
            region=cells["location"],
            market=market,
            price_per_hour=money(cells, "price"),
            gpu_raw=cells["gpu_name"],
            gpu_count=gpus,
            gpu_memory_mib=None if memory is None else mib(memory),
            vcpus=whole(cells, "cpu"),
            ram_gib=amount(cells, "memory"),
            disk_gb=None if disk is None else int(disk),
        )
    ]


def skypilot_rows(cells: Cells, about: About) -> list[Values]:
    """A line has one price on demand, one as spot, or both; one of them may be missing."""
    count = amount(cells, "AcceleratorCount")
    # A share of a GPU (0.5) is no GPU that anybody can search for by its count.
    if not cells["AcceleratorName"] or (count is not None and count < 1):
        return []
    prices = {Market.ON_DEMAND: money(cells, "Price", empty=True)}
    if "SpotPrice" in cells:
        prices[Market.SPOT] = money(cells, "SpotPrice", empty=True)
    if not any(price is not None for price in prices.values()):
        raise CellError("Price", _("There is no price. Write dollars an hour with a point, as 2.49, or drop the row."))
    known: Values = {
        "provider": cells.get("provider", ""),
        "instance_type": cells["InstanceType"],
        "region": cells["Region"],
        "gpu_raw": cells["AcceleratorName"],
        "gpu_count": whole(cells, "AcceleratorCount"),
        "gpu_memory_mib": gpu_memory_mib(cells.get("GpuInfo", "")),
        "vcpus": whole(cells, "vCPUs"),
        "ram_gib": amount(cells, "MemoryGiB"),
    }
    priced = [(market, price) for market, price in prices.items() if price is not None]
    return [offer_row(about, market=market, price_per_hour=price, **known) for market, price in priced]


LAYOUTS: Mapping[str, Callable[[Cells, About], list[Values]]] = {"gpuhunt": gpuhunt_rows, "skypilot": skypilot_rows}


def offer_row(about: About, *, provider: str, market: Market, ram_gib: Decimal | None, **known: object) -> Values:
    if not (name := provider or about.provider):
        raise CellError("provider", _("Nobody says whose offer this is. Name the provider above, or add the column."))
    texts = {name: text(Offer, name, str(known[name])) for name in ("instance_type", "region", "gpu_raw")}
    memory = known["gpu_memory_mib"]
    values: Values = {
        **EMPTY,
        **known,
        **texts,
        "provider": text(Offer, "provider", name.lower()),
        "market": market.value,
        "currency": about.currency,
        "gpu_model": text(
            Offer, "gpu_model", canonical(texts["gpu_raw"], memory_mib=memory if isinstance(memory, int) else None)
        ),
        "ram_mib": None if ram_gib is None else mib(ram_gib),
        "priced_on": about.priced_on,
        "origin": about.origin,
    }
    return values | {"key": f"{values['provider']}|{key_of(values)}"[:400]}


def needed(cells: Cells, column: str) -> str:
    if cells[column]:
        return cells[column]
    raise CellError(column, _("The cell is empty. Write the provider's name of the machine."))


def money(cells: Cells, column: str, *, empty: bool = False) -> Decimal | None:
    price = amount(cells, column)
    if price is None and not empty:
        raise CellError(column, _("There is no price. Write dollars an hour with a point, as 2.49, or drop the row."))
    if price is not None and not 0 < price < MAX_PRICE:
        raise CellError(column, _("A price must be above 0. Write what an hour of the whole machine costs."))
    return None if price is None else price.quantize(PRICE_STEP)


def amount(cells: Cells, column: str) -> Decimal | None:
    """A number from 0, or None for an empty cell."""
    cell = cells[column]
    if not cell or cell.lower() == "nan":
        return None
    try:
        number = Decimal(cell)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= MAX_INTEGER // 1024:
        raise CellError(
            column,
            _("“%(cell)s” is no number from 0. Write it as 2.49, without signs or units.") % {"cell": cut(cell, 40)},
        )
    return number


def whole(cells: Cells, column: str) -> int | None:
    number = amount(cells, column)
    if number is None:
        return None
    if number != int(number):
        raise CellError(column, _("“%(cell)s” is no whole number.") % {"cell": cut(cells[column], 40)})
    return int(number)


def gpu_memory_mib(info: str) -> int | None:
    """MiB of one GPU out of SkyPilot's GpuInfo, a dict in Python's or JSON's writing; None where it cannot be told."""
    try:
        gpu = ast.literal_eval(info)["Gpus"][0]
        size = float(gpu["MemoryInfo"]["SizeInMiB"])
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        return None
    if not (math.isfinite(size) and 0 < size < MAX_INTEGER // 1024):
        return None
    return mib(size) if size < LEAST_GPU_MIB else int(size)
