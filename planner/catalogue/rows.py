"""Reads the CSV files of planner/data: a cell that cannot be what its column says is an error with file, row and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"


class CatalogueError(ValueError):
    """A row of planner/data is wrong; the message names file, row, column and what was expected."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `number` is its line in the file, for messages."""

    file: str
    number: int
    cells: dict[str, str]

    def fault(self, column: str, expected: str) -> CatalogueError:
        return CatalogueError(f"{self.file}, line {self.number}, {column}: {self.cells[column]!r} is no {expected}")

    def text(self, column: str) -> str:
        if value := self.cells[column]:
            return value
        raise self.fault(column, "text")

    def optional_text(self, column: str) -> str:
        return self.cells[column]

    def number_or_none(self, column: str) -> float | None:
        """A positive, finite number, or None for an empty cell."""
        cell = self.cells[column]
        if not cell:
            return None
        try:
            number = float(cell)
        except ValueError:
            raise self.fault(column, "number") from None
        if not (math.isfinite(number) and number >= 0):
            raise self.fault(column, "finite number from 0")
        return number

    def number_of(self, column: str) -> float:
        number = self.number_or_none(column)
        if not number:
            raise self.fault(column, "number above 0")
        return number

    def whole_or_none(self, column: str) -> int | None:
        number = self.number_or_none(column)
        if number is None:
            return None
        if number != int(number):
            raise self.fault(column, "whole number")
        return int(number)

    def whole(self, column: str) -> int:
        number = self.whole_or_none(column)
        if not number:
            raise self.fault(column, "whole number above 0")
        return number

    def flag(self, column: str) -> bool:
        try:
            return {"True": True, "False": False, "1": True, "0": False, "yes": True, "no": False}[self.cells[column]]
        except KeyError:
            raise self.fault(column, "yes or no") from None


def read_rows(name: str, *, folder: Path = DATA) -> Iterator[Row]:
    """The rows of planner/data/`name`."""
    with (folder / name).open(encoding="utf-8", newline="") as file:
        for number, cells in enumerate(csv.DictReader(file), start=2):
            if None in cells or None in cells.values():
                raise CatalogueError(f"{name}, line {number}: another number of cells than columns")
            yield Row(name, number, cells)
