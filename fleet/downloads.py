"""The figures of a chart as a file: CSV for spreadsheets, Parquet for notebooks. Both hold the same rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from fleet.spreadsheets import disarmed

if TYPE_CHECKING:
    import pyarrow as pa

Cell = float | int | str | None
MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
START = "starts_at"


class UnknownFormatError(ValueError):
    """`?format=` names no kind of file; the text says which there are."""


@dataclass(frozen=True, slots=True)
class Table:
    """A row a start (aware UTC), a column a name with its unit in it; None where nothing was read.

    `notes` says what the figures are (resolution, statistic, bucket_seconds); Parquet keeps it as metadata of the file.
    """

    starts: Sequence[datetime]
    columns: Mapping[str, Sequence[Cell]]
    notes: Mapping[str, str] = field(default_factory=dict)


def series_csv(table: Table) -> str:
    """Times in ISO 8601, numbers to their last digit, nothing where nothing was read. Words that a spreadsheet would run are disarmed."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([START, *map(disarmed, table.columns)])
    starts = (start.astimezone(UTC).isoformat().replace("+00:00", "Z") for start in table.starts)
    for row in zip(starts, *table.columns.values(), strict=True):
        writer.writerow(map(disarmed, row))
    return buffer.getvalue()


def series_parquet(table: Table) -> bytes:
    # Tens of megabytes that a process needs only once somebody downloads.
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {START: pa.array(table.starts, pa.timestamp("us", tz="UTC"))}
    arrays |= {name: pa.array(values, _type_of(values)) for name, values in table.columns.items()}
    buffer = io.BytesIO()
    parquet.write_table(pa.table(arrays, metadata=dict(table.notes)), buffer, compression="zstd")
    return buffer.getvalue()


def _type_of(values: Sequence[Cell]) -> pa.DataType:
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if str in kinds:
        return pa.string()
    return pa.int64() if kinds == {int} else pa.float64()


def format_of(request: HttpRequest) -> str | None:
    """The kind of file that `?format=` asks for, None without one. Raises UnknownFormatError."""
    word = request.GET.get("format")
    if word is not None and word not in MEDIA_TYPES:
        raise UnknownFormatError(_("format: give one of %(known)s.") % {"known": ", ".join(MEDIA_TYPES)})
    return word


def file_response(table: Table, *, kind: str, name: str) -> HttpResponse:
    """`kind`: a key of MEDIA_TYPES; `name`: of the file, without its ending."""
    content = series_csv(table) if kind == "csv" else series_parquet(table)
    disposition = content_disposition_header(as_attachment=True, filename=f"{name}.{kind}")
    return HttpResponse(
        content,
        content_type=MEDIA_TYPES[kind],
        headers={"Content-Disposition": disposition or "attachment", "Cache-Control": "no-store"},
    )
