"""Files as rows of text: CSV in the encodings that spreadsheets write, and Parquet. Bounded; nothing is guessed about what is in them."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from django.utils.translation import gettext as _

from fleet.costs.bills.files.cells import Fault
from fleet.teams.fields import one_line

MAX_BYTES = 8_000_000
MAX_LINES = 50_000
MAX_COLUMNS = 400
MAX_CELL = 20_000
# Of a Parquet file: a few kilobytes can hold gigabytes of one repeated value.
MAX_UNPACKED_BYTES = 200_000_000
PARQUET = b"PAR1"
# Excel in China writes GB18030; what is no UTF-8 is hardly ever readable as it by accident.
ENCODINGS = ("utf-8-sig", "gb18030")
COLUMN_CHARS = 100


class FileError(Exception):
    """The file as a whole cannot be read."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.fault = Fault(line, "", text)


@dataclass(frozen=True, slots=True)
class Table:
    """`rows`: the number of the line in the file, and its cells by column, "" where there is none."""

    columns: Sequence[str]
    rows: Iterator[tuple[int, dict[str, str]]]


def table_of(content: bytes) -> Table:
    """Raises FileError, at once or while its rows are read."""
    if len(content) > MAX_BYTES:
        raise FileError(_("The file is larger than 8 MB. Import it in parts, a month or an account each."))
    return parquet_table(content) if content.startswith(PARQUET) else csv_table(content)


def csv_table(content: bytes) -> Table:
    text = decoded(content)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text))
    try:
        columns = [one_line(name) for name in next(reader, [])]
    except csv.Error as error:
        raise unreadable(error, 1) from None
    refuse_columns(columns)
    return Table(columns, csv_rows(reader, columns))


def decoded(content: bytes) -> str:
    if b"\0" in content:
        raise FileError(_("This is no text. Save it as CSV in UTF-8, or as Parquet."))
    for encoding in ENCODINGS:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise FileError(_("Its characters cannot be read. Save it as CSV in UTF-8."))


def delimiter_of(text: str) -> str:
    """What the first line holds most of: spreadsheets of half of Europe write semicolons."""
    first = text.split("\n", 1)[0]
    return max(",;\t", key=first.count)


def csv_rows(reader: Iterator[list[str]], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    for count in itertools.count(1):
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise unreadable(error, reader.line_num) from None  # type: ignore[attr-defined]  # a reader counts lines
        if cells is None:
            return
        line: int = reader.line_num  # type: ignore[attr-defined]  # a reader counts lines
        if count > MAX_LINES:
            raise FileError(_("The file has more than 50,000 lines. Import it in parts."), line)
        if len(cells) > len(columns):
            raise FileError(
                _("This line has more cells than the first line has columns. Put quotes around commas."), line
            )
        if any(len(cell) > MAX_CELL for cell in cells):
            raise FileError(_("A cell is longer than 20,000 characters."), line)
        if any(cell.strip() for cell in cells):
            yield line, dict(itertools.zip_longest(columns, (cell.strip() for cell in cells), fillvalue=""))


def unreadable(error: csv.Error, line: int) -> FileError:
    return FileError(_("This line is no CSV (%(error)s).") % {"error": error}, line)


def refuse_columns(columns: Sequence[str]) -> None:
    if not any(columns):
        raise FileError(_("The file is empty. Its first line names the columns."), 1)
    if len(columns) > MAX_COLUMNS or any(len(name) > COLUMN_CHARS for name in columns):
        raise FileError(_("The first line has no names of columns."), 1)
    if twice := next((name for name in columns if name and columns.count(name) > 1), None):
        raise FileError(_("The column %(name)s is there twice.") % {"name": twice}, 1)


def parquet_table(content: bytes) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        # Text stays as its different values and references to them: a long one that all lines share is there once.
        texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts)
        facts, columns = file.metadata, [one_line(name) for name in file.schema_arrow.names]
    except (pa.ArrowException, OSError, ValueError):
        raise FileError(_("This is no Parquet file, or it is damaged.")) from None
    refuse_columns(columns)
    unpacked = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
    if facts.num_rows > MAX_LINES or unpacked > MAX_UNPACKED_BYTES:
        raise FileError(_("The file has more than 50,000 lines, or unpacks to more than 200 MB. Import it in parts."))
    return Table(columns, parquet_rows(file, columns))


def parquet_rows(file: object, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines are counted from 1, as rows have no others. Maps and lists, such as tags, are left out."""
    import pyarrow as pa

    schema, line = file.schema_arrow, 0  # type: ignore[attr-defined]  # pyarrow has no types
    names = {
        field.name: name for field, name in zip(schema, columns, strict=True) if not pa.types.is_nested(field.type)
    }
    try:
        for batch in file.iter_batches(batch_size=1_000, columns=list(names)):  # type: ignore[attr-defined]  # see above
            refuse_long_cells(batch, line)
            for row in batch.to_pylist():
                line += 1
                yield line, {names[name]: plain(value) for name, value in row.items()}
    except (pa.ArrowException, OSError, ValueError):
        raise FileError(_("The rest of the file cannot be read."), line) from None


def refuse_long_cells(batch: object, line: int) -> None:
    import pyarrow as pa
    from pyarrow import compute

    for column in batch.columns:  # type: ignore[attr-defined]  # pyarrow has no types
        values = column.dictionary if pa.types.is_dictionary(column.type) else column
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            longest = compute.max(compute.binary_length(values)).as_py() or 0
            if longest > MAX_CELL:
                raise FileError(_("A cell is longer than 20,000 characters."), line)


def plain(value: object) -> str:
    """A value as a CSV would hold it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return ""
    return str(value)[:MAX_CELL].strip()
