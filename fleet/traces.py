"""Reads a recorded trace of GPUs: CSV, gzip or not, with the columns of COLUMNS, one GPU a pod."""

from __future__ import annotations

import csv
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median
from typing import IO

COLUMNS = ("pod", "t_s", "gpu_util_percent", "memory_used_bytes")
MAX_MEMORY_BYTES = 1 << 43
MAX_POD_LENGTH = 100


class TraceError(ValueError):
    """The file is no trace; the text says what is wrong and what one looks like."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reading. `t`: seconds since the trace began; None = the cell was empty, so nothing was read."""

    t: float
    utilization_percent: float | None
    memory_used_bytes: int | None
    line: int


@dataclass(frozen=True, slots=True)
class BadRow:
    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass
class Trace:
    """`pods`: the readings of each pod in the order of time. `digest` names the content, whatever the file is called."""

    digest: str
    pods: dict[str, list[Row]] = field(default_factory=dict)
    bad: list[BadRow] = field(default_factory=list)

    @property
    def samples(self) -> int:
        return sum(len(rows) for rows in self.pods.values())

    @property
    def step_seconds(self) -> float:
        """The usual time between two readings of a pod; 0 where no pod has two."""
        steps = [after.t - before.t for rows in self.pods.values() for before, after in pairwise(rows)]
        return median(steps) if steps else 0.0

    @property
    def last(self) -> float:
        return max((rows[-1].t for rows in self.pods.values()), default=0.0)


def read_trace(path: Path) -> Trace:
    """Raises TraceError where the file as a whole is unusable; single rows that are go to `bad`."""
    trace = Trace(_digest(path))
    seen: dict[tuple[str, float], int] = {}
    for line, cells in _lines(path):
        try:
            pod, row = _row(cells, line)
            _check_new(pod, row, seen)
        except ValueError as error:
            trace.bad.append(BadRow(line, str(error)))
            continue
        trace.pods.setdefault(pod, []).append(row)
    for rows in trace.pods.values():
        rows.sort(key=lambda row: row.t)
    return trace


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None


def _lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with its line number, the header being line 1."""
    line = 0
    try:
        with _open(path) as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            line = 1
            _check_header(path, header)
            for cells in reader:
                line = reader.line_num
                if cells:
                    yield line, dict(zip(header, cells, strict=False)) if len(cells) == len(header) else {}
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(
            f"{path} is a damaged gzip file, readable up to line {line}: {error}. Copy it again."
        ) from None
    except UnicodeDecodeError:
        raise TraceError(f"{path} is not UTF-8 text after line {line}. Save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise TraceError(f"{path} is not CSV at line {line + 1}: {error}.") from None


def _open(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _check_header(path: Path, header: list[str]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise TraceError(
            f"{path} has no column {', '.join(missing)}. Its first line must name {','.join(COLUMNS)}; it is: {','.join(header)[:200] or 'empty'}"
        )


def _row(cells: dict[str, str], line: int) -> tuple[str, Row]:
    """Raises ValueError in words for a person."""
    if not cells:
        raise ValueError("has more or fewer cells than the first line")
    pod = cells["pod"].strip()
    if not 1 <= len(pod) <= MAX_POD_LENGTH or not pod.isprintable():
        raise ValueError(f"pod must be a name of 1 to {MAX_POD_LENGTH} printable characters")
    t = _number(cells, "t_s", high=1e9)
    utilization = _number(cells, "gpu_util_percent", high=100)
    memory = _number(cells, "memory_used_bytes", high=MAX_MEMORY_BYTES)
    if t is None:
        raise ValueError("t_s is empty")
    if utilization is None and memory is None:
        raise ValueError("has neither gpu_util_percent nor memory_used_bytes")
    return pod, Row(t, utilization, None if memory is None else int(memory), line)


def _check_new(pod: str, row: Row, seen: dict[tuple[str, float], int]) -> None:
    first = seen.setdefault((pod, row.t), row.line)
    if first != row.line:
        raise ValueError(f"repeats pod {pod} at t_s {row.t:g} of line {first}")


def _number(cells: dict[str, str], name: str, *, high: float) -> float | None:
    word = cells[name].strip()
    if not word:
        return None
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{name} is {word[:40]!r}, not a number") from None
    if not isfinite(value) or not 0 <= value <= high:
        raise ValueError(f"{name} is {word[:40]}, outside 0 to {high:g}")
    return value
