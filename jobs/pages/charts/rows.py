"""Rows of a job's chart: figures over one axis of time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean, median
from typing import Any

__all__ = ["Gap", "Line", "Mark", "Row", "Window", "broken", "table_of"]

Value = float | None
Points = Sequence[tuple[float, Value]]
Gap = tuple[float, float]
# A row that stays so many of its usual distances silent has a gap.
GAP_DISTANCES = 5
TABLE_ROWS = 12


@dataclass(frozen=True, slots=True)
class Window:
    """[start, end) of an axis, aware UTC, in buckets of `width_seconds`."""

    start: datetime
    end: datetime
    width_seconds: float

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True)
class Line:
    """Points in order of time, seconds since the epoch; None breaks the line. `other`: of the run that it is compared with."""

    name: str
    points: Points
    dash: str = "solid"
    other: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment that stands across all rows."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """`text` writes a value; `factor` and `unit` are of the axis. `plan`: what was predicted, in the stored unit. `from_zero`: else the axis fits its values."""

    name: str
    title: str
    lines: Sequence[Line]
    text: Callable[[float], str]
    source: str
    unit: str = ""
    factor: float = 1.0
    top: float | None = None
    plan: float | None = None
    plan_text: str = ""
    from_zero: bool = True
    slow: bool = False
    gaps: Sequence[Gap] = ()
    figure: str = ""
    # Written with k, M and G.
    large: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "figure": self.figure,
            "source": self.source,
            "unit": self.unit,
            "top": self.top,
            "zero": self.from_zero,
            "slow": self.slow,
            "large": self.large,
            "plan": None if self.plan is None else {"value": short(self.plan * self.factor), "text": self.plan_text},
            "gaps": [list(gap) for gap in self.gaps],
            "lines": [
                {
                    "name": line.name,
                    "dash": line.dash,
                    "other": line.other,
                    "x": [round(at, 1) for at, _value in line.points],
                    "y": [None if value is None else short(value * self.factor) for _at, value in line.points],
                }
                for line in self.lines
            ],
        }


def short(value: float) -> float:
    """What a chart can show, at a third of the bytes."""
    return float(f"{value:.5g}")


def broken(points: Sequence[tuple[float, float]], width_seconds: float) -> Points:
    """With a None wherever a line stays silent much longer than it usually does."""
    if len(points) < 3:
        return list(points)
    distances = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    longest = GAP_DISTANCES * max(width_seconds, median(distances))
    found: list[tuple[float, Value]] = [points[0]]
    for point, distance in zip(points[1:], distances, strict=True):
        if distance > longest:
            found.append((point[0] - distance / 2, None))
        found.append(point)
    return found


def table_of(rows: Sequence[Row], window: Window) -> tuple[list[str], list[tuple[datetime, list[str]]]]:
    """Heads and, for a dozen even stretches, the mean of every line; "" where nothing was read."""
    lines = [(row, line) for row in rows for line in row.lines]
    heads = [row.title if len(row.lines) == 1 else f"{row.title}: {line.name}" for row, line in lines]
    width, start = window.seconds / TABLE_ROWS, window.start.timestamp()
    filled: list[tuple[datetime, list[str]]] = []
    for number in range(TABLE_ROWS):
        begin = start + number * width
        cells = [_cell(row, line, begin, begin + width) for row, line in lines]
        filled.append((datetime.fromtimestamp(begin, UTC), cells))
    return heads, filled


def _cell(row: Row, line: Line, begin: float, end: float) -> str:
    known = [value for at, value in line.points if value is not None and begin <= at < end]
    return row.text(fmean(known)) if known else ""
