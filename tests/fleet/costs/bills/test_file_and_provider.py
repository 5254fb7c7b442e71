"""The same time told by a file and by the provider is billed once: what a person took stands."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from fleet.costs.bills.comparing import compare_month
from fleet.costs.bills.models import BillLine
from fleet.providers.base import ChargeKind
from tests.fleet.costs.bills.conftest import DAY, DECEMBER, NOVEMBER, NOW, charge

LAST_DAYS = DECEMBER - 4 * DAY


@pytest.fixture
def machine(pods, make_instance):
    return make_instance(name="a", account=pods, external_id="a")


def billed(account, machine=None) -> list[tuple[str, int]]:
    rows = (
        BillLine.objects.filter(account=account, superseded_by=None).select_related("bill").order_by("starts_at", "pk")
    )
    return [(row.bill.source, int(row.amount)) for row in rows if machine is None or row.instance == machine]


def days(first, last, **more):
    return [charge("a", day, 10, **more) for day in range(first, last + 1)]


def test_days_of_a_month_that_a_file_has_are_not_taken_again(pods, machine, take):
    take([charge("a", 1, 300, days=30, line_id="invoice")], source="csv")
    taken = take([*days(27, 30), charge("b", 28, 7)], start=LAST_DAYS)
    assert (taken.new, taken.dropped) == (1, 0)
    assert billed(pods) == [("csv", 300), ("api", 7)]


def test_a_reading_that_spans_its_middle_does_not_drop_it(pods, machine, take):
    take([charge("a", 1, 300, days=30, line_id="invoice")], source="csv")
    take(days(10, 23), start=NOVEMBER + 9 * DAY, end=NOVEMBER + 23 * DAY)
    assert billed(pods) == [("csv", 300)]


@pytest.mark.parametrize("complete", [True, False])
def test_a_file_that_comes_later_takes_the_place_of_days(pods, machine, take, complete):
    take([*days(1, 4), charge("a", -3, 10)], start=NOVEMBER - 5 * DAY)
    take([charge("a", 1, 300, days=30, line_id="invoice")], source="csv", complete=complete)
    assert billed(pods) == [("api", 10), ("csv", 300)]


def test_one_sum_of_a_machine_is_all_of_its_classes(pods, machine, take):
    take([charge("a", 1, 300, days=30, kind=ChargeKind.OTHER, raw_kind="")], source="csv")
    take([*days(27, 30), charge("a", 28, 1, kind=ChargeKind.DISK)], start=LAST_DAYS)
    assert billed(pods) == [("csv", 300)]


def test_another_class_and_what_names_nothing_is_taken(pods, machine, take):
    take([charge("a", 1, 300, days=30), charge("", 28, 5, kind=ChargeKind.CREDIT, line_id="gift")], source="csv")
    told = [charge("a", 28, 1, kind=ChargeKind.DISK), charge("", 28, -2, kind=ChargeKind.CREDIT)]
    take(told, start=LAST_DAYS)
    assert sorted(billed(pods)) == [("api", -2), ("api", 1), ("csv", 5), ("csv", 300)]


def test_a_sum_of_credits_over_a_month_holds_those_of_its_days(pods, take):
    take([charge("", 1, -20, days=30, kind=ChargeKind.CREDIT, line_id="all")], source="csv")
    take([charge("", 28, -2, kind=ChargeKind.CREDIT)], start=LAST_DAYS)
    assert billed(pods) == [("csv", -20)]


def test_a_week_over_the_end_of_a_month_is_missing_in_neither(pods, machine, write, take):
    """29 October to 5 November: most of it is in November, and so is its comparison."""
    start = NOVEMBER - 3 * DAY
    write(machine, "compute", NOVEMBER - 10 * DAY, NOVEMBER + 11 * DAY, 1)
    weeks = [start + timedelta(weeks=number) for number in (-1, 0, 1)]
    charges = [charge("a", 1, 168, start=at, end=at + timedelta(weeks=1), line_id=f"{at}") for at in weeks]
    take(charges, start=NOVEMBER - 10 * DAY, end=NOVEMBER + 11 * DAY)
    (october,) = compare_month(account=pods, month=date(2026, 10, 1), now=NOW)
    (november,) = compare_month(account=pods, month=date(2026, 11, 1), now=NOW)
    assert (october.counted, october.billed, october.lines.count()) == (Decimal(168), Decimal(168), 0)
    assert (november.counted, november.billed, november.lines.count()) == (Decimal(336), Decimal(336), 0)


def test_another_class_in_such_a_week_still_is(pods, machine, write, take):
    write(machine, "compute", NOVEMBER - 3 * DAY, NOVEMBER + 4 * DAY, 1)
    write(machine, "disk_running", NOVEMBER - 3 * DAY, NOVEMBER - 2 * DAY, 1)
    week = charge("a", 1, 168, start=NOVEMBER - 3 * DAY, end=NOVEMBER + 4 * DAY)
    take([week, charge("a", -9, 5)], start=NOVEMBER - 10 * DAY)
    (october,) = compare_month(account=pods, month=date(2026, 10, 1), now=NOW)
    missing = october.lines.get(status="missing_there")
    assert (missing.meter, missing.counted, missing.left) == ("disk", Decimal(24), Decimal(-24))
