"""Every kind of reason, and that counted + explained + left is what was billed. Pure: a month of November by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.costs.bills.matching import Billed, Counted, Doubt, Key, MeterClass, ReasonKind, Status
from fleet.costs.bills.reasons import Terms, reconcile

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TERMS = Terms(START, END)
RATE = Decimal(2)


def key(meter=MeterClass.COMPUTE, machine=1, name="", currency="USD") -> Key:
    return Key(machine, name, meter, currency)


def counted(hours, *, start=START + 3 * DAY, rate=RATE, meter=MeterClass.COMPUTE, **more) -> Counted:
    return Counted(key(meter), start, start + float(hours) * HOUR, rate * Decimal(hours), rate, **more)


def billed(amount, *, start=START + 3 * DAY, end=None, meter=MeterClass.COMPUTE, hours=None, **more) -> Billed:
    return Billed(key(meter, **more), start, end or start + DAY, Decimal(amount), hours and Decimal(hours))


def one(mine, theirs, *, terms=TERMS, doubts=()):
    lines = reconcile(mine, theirs, terms, doubts=doubts)
    for line in lines:
        assert line.counted_amount + line.explained + line.left == line.billed_amount
    (line,) = lines
    return line


def only(line, kind: ReasonKind, amount, left=0) -> None:
    assert [(reason.kind, reason.amount) for reason in line.reasons] == [(kind, Decimal(amount))]
    assert line.left == Decimal(left)


def test_the_same_within_a_cent_or_one_percent_is_matched():
    line = one([counted(24)], [billed("48.40")])
    assert line.status is Status.MATCHED
    only(line, ReasonKind.TOLERANCE, "0.40")
    assert one([counted(24)], [billed("48")]).reasons == ()
    assert one([counted(24)], [billed("48.50")]).status is Status.DIFFERS
    assert one([counted("0.005")], [billed("0.02")]).status is Status.MATCHED


def test_a_credit_is_explained_by_itself():
    line = one([], [billed("-5", meter=MeterClass.CREDIT)])
    assert line.status is Status.MISSING_HERE
    only(line, ReasonKind.CREDIT, -5)


def test_tax_is_on_bills_alone():
    only(one([], [billed("7.35", meter=MeterClass.TAX)]), ReasonKind.TAX, "7.35")


def test_data_out_that_is_free_at_first():
    line = one([counted(10, meter=MeterClass.EGRESS)], [billed("11", meter=MeterClass.EGRESS)])
    only(line, ReasonKind.FREE_TIER, -9)


def test_what_the_provider_books_in_another_month():
    line = one([counted(2, start=END - 2 * HOUR)], [])
    assert line.status is Status.MISSING_THERE
    only(line, ReasonKind.BORDER, -4)
    assert one([counted(8, start=START)], []).reasons[0].kind is ReasonKind.BORDER


def test_what_is_missing_in_the_middle_of_the_month_is_not_its_border():
    line = one([counted(2)], [])
    assert (line.status, line.reasons, line.left) == (Status.MISSING_THERE, (), -4)


def test_a_rate_that_is_not_the_providers():
    line = one([counted(24, converted=True)], [billed("49.50")])
    only(line, ReasonKind.CURRENCY, "1.50")
    assert one([counted(24, converted=True)], [billed("60")]).reasons[0].kind is not ReasonKind.CURRENCY


def test_an_account_that_was_silent_explains_what_its_time_costs_and_no_more():
    doubt = Doubt(key(), START + 3 * DAY + 10 * HOUR, START + 3 * DAY + 12 * HOUR, RATE, silent=True)
    line = one([counted(10)], [billed("24")], doubts=[doubt])
    only(line, ReasonKind.SILENT, 4)
    assert dict(line.reasons[0].evidence) == {"start": "2026-11-04T10:00:00+00:00", "end": "2026-11-04T12:00:00+00:00"}
    only(one([counted(10)], [billed("30")], doubts=[doubt]), ReasonKind.SILENT, 4, left=6)
    # Less than counted may be silence too: it may have stopped sooner.
    only(one([counted(10)], [billed("18")], doubts=[doubt]), ReasonKind.SILENT, -2)


def test_an_edge_that_lies_between_two_readings():
    doubt = Doubt(key(), START + 3 * DAY + 9 * HOUR, START + 3 * DAY + 9.5 * HOUR, RATE)
    only(one([counted(9)], [billed("18.80")], doubts=[doubt]), ReasonKind.EDGES, "0.80")


def test_a_doubt_that_reaches_over_midnight_counts_on_both_days():
    midnight = START + 4 * DAY
    doubt = Doubt(key(), midnight - HOUR, midnight + HOUR, RATE, silent=True)
    lines = reconcile(
        [counted(10), counted(10, start=midnight)], [billed(22), billed(22, start=midnight)], TERMS, doubts=[doubt]
    )
    assert [line.reasons[0].amount for line in lines] == [2, 2]


def test_a_minimum_and_a_quantum_for_each_start():
    hourly = Terms(START, END, quantum_seconds=3600)
    only(one([counted("0.5", runs=1)], [billed("2")], terms=hourly), ReasonKind.MINIMUM, 1)
    assert one([counted("0.5", runs=1)], [billed("4")], terms=hourly).left == 3
    assert one([counted("0.5", runs=1)], [billed("2")]).left == 1


def test_the_bill_tells_other_hours_at_the_same_price():
    line = one([counted(20)], [billed("44", hours=22)])
    only(line, ReasonKind.TIME, 4)
    assert dict(line.reasons[0].evidence) == {"billed_hours": "22", "counted_hours": "20"}


def test_the_bill_tells_the_same_hours_at_another_price():
    line = one([counted(20)], [billed("50", hours=20)])
    only(line, ReasonKind.PRICE, 10)
    assert dict(line.reasons[0].evidence) == {"billed_price": "2.5", "counted_price": "2"}


def test_more_than_all_the_time_there_is_only_at_another_price():
    only(one([counted(24)], [billed("60")]), ReasonKind.PRICE, 12)
    assert one([counted(23)], [billed("60")]).left == 14


def test_a_machine_that_ran_at_a_price_that_nobody_told():
    free = Counted(key(), START + 3 * DAY, START + 4 * DAY, Decimal(0), None, unpriced=True)
    line = one([free], [billed("48")])
    assert line.status is Status.MISSING_HERE
    only(line, ReasonKind.UNPRICED, 48)


@pytest.mark.parametrize("meter", ["disk", "network_volume", "egress", "address", "licence"])
def test_what_no_listing_tells(meter):
    line = one([], [billed("95", meter=MeterClass(meter))])
    assert line.status is Status.MISSING_HERE
    only(line, ReasonKind.NOT_READ, 95)


def test_a_machine_that_nobody_ever_saw_is_left_to_explain():
    line = one([], [billed("23.04", machine=0, name="i-unknown")])
    assert (line.status, line.reasons, line.left) == (Status.MISSING_HERE, (), Decimal("23.04"))


def test_volumes_that_were_counted_smaller_are_left_to_explain():
    line = one([counted(24, meter=MeterClass.DISK, rate=Decimal(4))], [billed("102.18", meter=MeterClass.DISK)])
    assert (line.reasons, line.left) == ((), Decimal("6.18"))
