"""Reading traces: what is wrong in them is named by line, and a file that is no trace says what one looks like."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fleet.traces import TraceError, read_trace

HEADER = "pod,t_s,gpu_util_percent,memory_used_bytes\n"


@pytest.fixture
def write(tmp_path: Path):
    def make(text: str | bytes, name: str = "trace.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def test_rows_are_grouped_by_pod_and_ordered_by_time(write) -> None:
    trace = read_trace(write(HEADER + "a,57,12.5,100\nb,0,0.0,5\na,0,99,200\n"))
    assert trace.bad == []
    assert [(row.t, row.utilization_percent, row.memory_used_bytes) for row in trace.pods["a"]] == [
        (0, 99, 200),
        (57, 12.5, 100),
    ]
    assert (trace.samples, trace.last) == (3, 57)


def test_the_pace_of_a_trace_is_its_usual_step(write) -> None:
    assert read_trace(write(HEADER + "a,0,1,1\na,57,1,1\na,114,1,1\nb,9,1,1\nb,900,1,1\n")).step_seconds == 57
    assert read_trace(write(HEADER + "a,0,1,1\nb,57,1,1\n")).step_seconds == 0


def test_gzip_byte_order_mark_and_further_columns_are_fine(write) -> None:
    text = "\ufeffnode,memory_used_bytes,pod,t_s,gpu_util_percent\nn1,5,a,0,1\n"
    assert read_trace(write(gzip.compress(text.encode()), "trace.csv.gz")).samples == 1


def test_the_digest_is_of_the_content_not_of_the_name(write) -> None:
    text = HEADER + "a,0,1,1\n"
    assert read_trace(write(text)).digest == read_trace(write(text, "copy.csv")).digest


def test_an_empty_cell_was_not_read(write) -> None:
    row = read_trace(write(HEADER + "a,0,,77\n")).pods["a"][0]
    assert (row.utilization_percent, row.memory_used_bytes) == (None, 77)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,0,101,5", "gpu_util_percent is 101, outside 0 to 100"),
        ("a,0,nan,5", "gpu_util_percent is nan, outside"),
        ("a,-1,5,5", "t_s is -1, outside"),
        ("a,soon,5,5", "t_s is 'soon', not a number"),
        ("a,,5,5", "t_s is empty"),
        ("a,0,5,-5", "memory_used_bytes is -5, outside"),
        ("a,0,,", "has neither"),
        (",0,5,5", "pod must be a name"),
        ("a,0,5", "more or fewer cells"),
        ("a,0,5,5,5", "more or fewer cells"),
        ("b,0,6,6", "repeats pod b at t_s 0 of line 2"),
    ],
)
def test_a_bad_row_is_named_by_its_line_and_the_others_are_kept(write, row: str, reason: str) -> None:
    trace = read_trace(write(f"{HEADER}b,0,1,1\n{row}\nb,57,1,1\n"))
    assert trace.samples == 2
    assert [bad.line for bad in trace.bad] == [3]
    assert reason in str(trace.bad[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"pod,t_s\na,0\n", "no column gpu_util_percent, memory_used_bytes.*must name"),
        (b"", "it is: empty"),
        (HEADER.encode() + b"a,0,\xff,5\n", "not UTF-8"),
        (gzip.compress((HEADER + "a,0,1,1\n" * 5000).encode())[:-20], "damaged gzip file"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_whole(write, content: bytes, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_trace(write(content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.csv cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
