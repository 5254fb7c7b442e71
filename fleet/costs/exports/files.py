"""Rows as a file, in pieces: whoever sends it holds some thousand rows, not a month of a fleet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from fleet.costs.exports.columns import Column, Row, arrow_schema, for_arrow, to_text

CSV_ROWS = 1_000
# A row group of this many rows packs well, and is some megabytes.
PARQUET_ROWS = 20_000
BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
T = TypeVar("T")


def csv_pieces(columns: Sequence[Column], rows: Iterable[Row], *, bom: bool = False) -> Iterator[bytes]:
    """`bom`: Excel takes a CSV file without one for the system's old encoding, and shows Chinese as something else."""
    names = [one.name for one in columns]
    yield ((BYTE_ORDER_MARK if bom else "") + _lines([names])).encode()
    for batch in batches(rows, CSV_ROWS):
        yield _lines([to_text(row.get(name)) for name in names] for row in batch).encode()


def _lines(rows: Iterable[Sequence[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue()


class _Outlet(io.RawIOBase):
    """Takes what the writer of Parquet writes, and gives it away."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.parts.append(bytes(data))  # type: ignore[call-overload]  # any buffer
        return len(self.parts[-1])

    def take(self) -> bytes:
        found = b"".join(self.parts)
        self.parts.clear()
        return found


def parquet_pieces(columns: Sequence[Column], rows: Iterable[Row], *, notes: Mapping[str, str]) -> Iterator[bytes]:
    # Tens of megabytes that a process needs only once somebody downloads.
    import pyarrow as pa
    from pyarrow import parquet

    schema = arrow_schema(columns, notes)
    outlet = _Outlet()
    with parquet.ParquetWriter(outlet, schema, compression="zstd") as writer:
        for batch in batches(rows, PARQUET_ROWS):
            cells = {one.name: [for_arrow(row.get(one.name), one.kind) for row in batch] for one in columns}
            writer.write_table(pa.Table.from_pydict(cells, schema=schema))
            yield outlet.take()
    yield outlet.take()


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(items)
    while found := list(islice(source, size)):
        yield found
