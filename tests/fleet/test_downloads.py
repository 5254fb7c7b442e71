"""Figures as CSV and Parquet: what is read back is what was given, gaps are null, and no cell runs as a formula."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from fleet.downloads import Table, UnknownFormatError, file_response, format_of, series_csv, series_parquet

START = datetime(2026, 11, 30, 8, tzinfo=UTC)
TABLE = Table(
    [START + timedelta(minutes=5 * step) for step in range(3)],
    {"gpu": [41, 41, 42], "power_watts": [300.25, None, -0.1], "state": ["working", None, "=cmd|calc"]},
    {"resolution": "5min"},
)


def from_csv(text: str) -> tuple[list[str], list[list[str]]]:
    header, *rows = csv.reader(io.StringIO(text))
    return header, rows


def test_csv_has_utc_times_plain_numbers_and_nothing_for_a_gap():
    header, rows = from_csv(series_csv(TABLE))
    assert header == ["starts_at", "gpu", "power_watts", "state"]
    assert rows[0] == ["2026-11-30T08:00:00Z", "41", "300.25", "working"]
    assert rows[1] == ["2026-11-30T08:05:00Z", "41", "", ""]
    # A number below zero is no formula; a word that looks like one is disarmed.
    assert rows[2][2:] == ["-0.1", "'=cmd|calc"]


def test_a_name_of_a_column_is_disarmed_too():
    header, _rows = from_csv(series_csv(Table([START], {"=1+1_watts": [1.0]})))
    assert header[1] == "'=1+1_watts"


def test_parquet_has_types_and_says_what_the_figures_are():
    found = parquet.read_table(io.BytesIO(series_parquet(TABLE)))
    assert found.schema.types == [pa.timestamp("us", tz="UTC"), pa.int64(), pa.float64(), pa.string()]
    assert found.column("power_watts").null_count == 1
    assert found.to_pydict()["state"] == ["working", None, "=cmd|calc"]
    assert found.schema.metadata[b"resolution"] == b"5min"


def test_a_time_of_another_zone_becomes_utc():
    elsewhere = Table([START.astimezone(timezone(timedelta(hours=8)))], {"load1": [1.0]})
    assert from_csv(series_csv(elsewhere))[1][0][0] == "2026-11-30T08:00:00Z"
    assert parquet.read_table(io.BytesIO(series_parquet(elsewhere))).to_pydict()["starts_at"] == [START]


values = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(st.tuples(values, values), max_size=40))
def test_both_are_read_back_as_they_were(rows):
    starts = [START + timedelta(seconds=10 * step) for step in range(len(rows))]
    columns = {"one": [row[0] for row in rows], "two_bytes": [row[1] for row in rows]}
    table = Table(starts, columns)
    assert parquet.read_table(io.BytesIO(series_parquet(table))).to_pydict() == {"starts_at": starts, **columns}
    _header, cells = from_csv(series_csv(table))
    assert [tuple(float(cell) if cell else None for cell in row[1:]) for row in cells] == rows
    assert [datetime.fromisoformat(row[0]) for row in cells] == starts


def test_a_file_has_its_name_its_kind_and_is_kept_by_nobody():
    answer = file_response(TABLE, kind="parquet", name="train-01-power")
    assert answer["Content-Disposition"] == 'attachment; filename="train-01-power.parquet"'
    assert answer["Content-Type"] == "application/vnd.apache.parquet"
    assert answer["Cache-Control"] == "no-store"


def test_a_format_is_asked_for_by_its_name():
    ask = RequestFactory().get
    assert format_of(ask("/")) is None
    assert format_of(ask("/?format=csv")) == "csv"
    with pytest.raises(UnknownFormatError, match="format: give one of csv, parquet"):
        format_of(ask("/?format=xlsx"))
