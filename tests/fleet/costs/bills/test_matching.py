"""Which counted time is held against which line of a bill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.bills.matching import STEP, Billed, Counted, Key, MeterClass, compare

START = datetime(2026, 11, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
COMPUTE = Key(1, "", MeterClass.COMPUTE, "USD")


def counted(start_hour, end_hour, key=COMPUTE) -> Counted:
    start, end = START + start_hour * HOUR, START + end_hour * HOUR
    amount = (Decimal(end_hour - start_hour) / 3).quantize(STEP)
    return Counted(key, start, end, amount, Decimal(1) / 3)


def billed(start_hour: int, end_hour: int, amount=1, key=COMPUTE) -> Billed:
    return Billed(key, START + start_hour * HOUR, START + end_hour * HOUR, Decimal(amount))


def spans(lines):
    return [((line.start - START) / HOUR, (line.end - START) / HOUR) for line in lines]


def test_days_are_compared_by_themselves():
    lines = list(compare([counted(12, 60)], [billed(0, 24), billed(24, 48), billed(48, 72)]))
    assert spans(lines) == [(0, 24), (24, 48), (48, 72)]
    assert [round(line.counted_amount, 6) for line in lines] == [4, 8, 4]


def test_a_longer_line_is_compared_as_a_whole():
    (line,) = compare([counted(12, 60), counted(70, 80)], [billed(0, 720)])
    assert round(line.counted_amount, 12) == round(Decimal(58) / 3, 12)


def test_a_clock_that_is_not_utc_is_followed():
    lines = list(compare([counted(-10, 20)], [billed(-8, 16)]))
    assert spans(lines) == [(-24, -8), (-8, 16), (16, 24)]
    assert [bool(line.billed) for line in lines] == [False, True, False]


def test_lines_that_overlap_are_one():
    (line,) = compare([], [billed(0, 24), billed(12, 36)])
    assert spans([line]) == [(0, 36)]


def test_machines_resources_meters_and_currencies_keep_apart():
    keys = [
        COMPUTE,
        Key(2, "", MeterClass.COMPUTE, "USD"),
        Key(1, "", MeterClass.DISK, "USD"),
        Key(0, "vol-1", MeterClass.NETWORK_VOLUME, "USD"),
        Key(1, "", MeterClass.COMPUTE, "CNY"),
    ]
    assert len(list(compare([counted(0, 24, key) for key in keys], []))) == 5


def test_one_sum_for_a_machine_is_held_against_everything_of_it_but_credits():
    disk, whole = Key(1, "", MeterClass.DISK, "USD"), Key(1, "", MeterClass.ALL, "USD")
    credit = Key(1, "", MeterClass.CREDIT, "USD")
    lines = list(compare([counted(0, 24), counted(0, 24, disk)], [billed(0, 24, 16, whole), billed(0, 24, -1, credit)]))
    by_meter = {line.key.meter: line for line in lines}
    assert set(by_meter) == {MeterClass.ALL, MeterClass.CREDIT}
    assert round(by_meter[MeterClass.ALL].counted_amount, 6) == 16


hours = st.integers(-40, 800)
periods = st.tuples(hours, st.integers(1, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(periods, max_size=6), st.lists(periods, max_size=6))
def test_nothing_is_lost_and_nothing_is_there_twice(mine, theirs):
    rows, bill = [counted(*span) for span in mine], [billed(start, end, amount=7) for start, end in theirs]
    lines = list(compare(rows, bill))
    assert sum(line.counted_amount for line in lines) == sum(row.amount for row in rows)
    assert sum(line.billed_amount for line in lines) == sum(row.amount for row in bill)
    ordered = spans(lines)
    assert all(before[1] <= after[0] for before, after in pairwise(ordered))
