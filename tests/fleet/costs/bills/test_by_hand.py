"""A bill made by hand against a ledger made by hand: one line of every kind, and every cent is accounted for."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from fleet.costs.bills.comparing import compare_month
from fleet.costs.bills.matching import Status
from fleet.costs.bills.shown import reconciliation_of
from fleet.costs.spend.models import ExchangeRate
from fleet.providers.base import ChargeKind
from tests.fleet.costs.bills.conftest import DAY, DECEMBER, HOUR, NOVEMBER, NOW, charge


@pytest.fixture
def bill(pods, make_instance, write, take):
    """Machines by what is wrong with them. Each runs at $2 an hour unless said otherwise."""
    made = {
        name: make_instance(name=name, account=pods, external_id=name)
        for name in ("fine", "silent", "edge", "minimum", "priced", "timed", "unpriced", "border", "yuan", "ghostly")
    }
    noon = NOVEMBER + 12 * HOUR
    write(made["fine"], "compute", NOVEMBER, NOVEMBER + 2 * DAY, 2)
    write(made["silent"], "compute", noon - 6 * HOUR, noon, 2, end_half_width_seconds=7200)
    write(made["edge"], "compute", noon - 6 * HOUR, noon, 2, end_half_width_seconds=900)
    write(made["minimum"], "compute", noon, noon + HOUR / 2, 2, run=1)
    write(made["priced"], "compute", NOVEMBER, NOVEMBER + DAY, 2)
    write(made["timed"], "compute", NOVEMBER, noon, 2)
    write(made["unpriced"], "compute", NOVEMBER, NOVEMBER + DAY, None)
    write(made["border"], "compute", DECEMBER - 2 * HOUR, DECEMBER + HOUR, 2)
    write(made["yuan"], "compute", NOVEMBER, NOVEMBER + DAY, 14, currency="CNY")
    write(made["ghostly"], "compute", NOVEMBER + 9 * DAY, NOVEMBER + 10 * DAY, 2)
    write(made["fine"], "disk_running", NOVEMBER, DECEMBER, "0.10", unit="gb_month", quantity=300)
    write(None, "egress", NOVEMBER, NOVEMBER + DAY, "9", resource="eu", unit="once")
    ExchangeRate.objects.create(team=pods.team, currency="CNY", into="USD", day=date(2026, 10, 1), rate=Decimal("0.14"))
    take(
        [
            charge("fine", 1, "48"),
            charge("fine", 2, "48.01"),
            charge("fine", 1, "36.18", kind=ChargeKind.DISK, days=30),
            charge("silent", 1, "15"),
            charge("edge", 1, "12.40"),
            charge("minimum", 1, "1.005"),
            charge("priced", 1, "60"),
            charge("timed", 1, "28", quantity=Decimal(14), unit="hours"),
            charge("unpriced", 1, "55.20"),
            charge("yuan", 1, "48.10"),
            charge("", 1, "0", kind=ChargeKind.EGRESS, resource="eu"),
            charge("", 5, "95", kind=ChargeKind.NETWORK_VOLUME, resource="vol-1"),
            charge("", 30, "21.40", kind=ChargeKind.TAX),
            charge("", 12, "-10", kind=ChargeKind.CREDIT),
            charge("", 13, "-3", kind=ChargeKind.REFUND),
            charge("i-never-seen", 2, "23.04"),
            charge("", 2, "4.20", kind=ChargeKind.OTHER, raw_kind="endpointAmount"),
        ]
    )
    compare_month(account=pods, month=date(2026, 11, 1), now=NOW)
    return pods


def test_every_line_says_why_it_differs(bill):
    found = reconciliation_of(bill, date(2026, 11, 1))
    assert found is not None
    told = {
        (group.instance.name if group.instance else group.name, group.meter): (
            group.status.value,
            [one.kind for one in group.explanations],
            group.difference,
            group.left,
        )
        for group in found.groups
    }
    d = Decimal
    assert told == {
        ("fine", "disk"): ("differs", [], d("6.18"), d("6.18")),
        ("silent", "compute"): ("differs", ["silent"], d(3), d(0)),
        ("edge", "compute"): ("differs", ["edges"], d("0.40"), d(0)),
        ("priced", "compute"): ("differs", ["price"], d(12), d(0)),
        ("timed", "compute"): ("differs", ["time"], d(4), d(0)),
        ("unpriced", "compute"): ("missing_here", ["unpriced"], d("55.20"), d(0)),
        ("yuan", "compute"): ("differs", ["currency"], d("1.06"), d(0)),
        ("border", "compute"): ("missing_there", ["border"], d(-4), d(0)),
        ("ghostly", "compute"): ("missing_there", [], d(-48), d(-48)),
        ("eu", "egress"): ("differs", ["free_tier"], d(-9), d(0)),
        ("vol-1", "network_volume"): ("missing_here", ["not_read"], d(95), d(0)),
        ("", "tax"): ("missing_here", ["tax"], d("21.40"), d(0)),
        ("", "credit"): ("missing_here", ["credit"], d(-13), d(0)),
        ("i-never-seen", "compute"): ("missing_here", [], d("23.04"), d("23.04")),
        ("", "other"): ("missing_here", [], d("4.20"), d("4.20")),
    }


def test_the_sums_hold_to_the_last_digit(bill):
    found = reconciliation_of(bill, date(2026, 11, 1))
    assert found is not None
    billed = Decimal(48) + Decimal("48.01") + Decimal("36.18") + Decimal(15) + Decimal("12.40") + Decimal("1.005")
    billed += Decimal(60) + Decimal(28) + Decimal("55.20") + Decimal("48.10") + 95 + Decimal("21.40") - 10 - 3
    billed += Decimal("23.04") + Decimal("4.20")
    assert found.billed == billed
    assert found.counted + found.explained + found.left == found.billed
    assert found.left == Decimal("6.18") - 48 + Decimal("23.04") + Decimal("4.20")
    matched = found.parts[0]
    assert (matched.status, matched.lines, matched.amount) == (Status.MATCHED, 3, Decimal("97.015"))
    assert found.difference == sum(group.difference for group in found.groups) + Decimal("0.015")


def test_the_month_of_a_bill_that_has_not_come_is_missing_nowhere(pods, make_instance, write, take):
    machine = make_instance(name="fine", account=pods, external_id="fine")
    write(machine, "compute", NOVEMBER, None, 2)
    take([charge("fine", day, 48) for day in (1, 2)], end=NOVEMBER + 2 * DAY)
    compare_month(account=pods, month=date(2026, 11, 1), now=NOVEMBER + 4 * DAY)
    found = reconciliation_of(pods, date(2026, 11, 1))
    assert found is not None
    assert found.counted == found.billed == 96
    assert found.groups == ()


def test_a_month_without_a_bill_is_not_compared(pods, make_instance, write):
    write(make_instance(name="fine", account=pods, external_id="fine"), "compute", NOVEMBER, DECEMBER, 2)
    assert compare_month(account=pods, month=date(2026, 11, 1), now=NOW) == []
    assert reconciliation_of(pods, date(2026, 11, 1)) is None


def test_a_line_over_the_end_of_a_month_is_compared_once_with_all_that_it_is_for(pods, make_instance, write, take):
    machine = make_instance(name="weekly", account=pods, external_id="weekly")
    write(machine, "compute", NOVEMBER + 20 * DAY, DECEMBER + 3 * DAY, 2)
    take([charge("weekly", 21, 7 * 48, days=7), charge("weekly", 28, 6 * 48, days=6)], end=DECEMBER + 3 * DAY)
    (november,) = compare_month(account=pods, month=date(2026, 11, 1), now=NOW)
    (december,) = compare_month(account=pods, month=date(2026, 12, 1), now=NOW)
    assert (november.counted, november.billed, november.matched_lines) == (Decimal(336), Decimal(336), 1)
    assert (december.counted, december.billed, december.matched_lines) == (Decimal(288), Decimal(288), 1)
