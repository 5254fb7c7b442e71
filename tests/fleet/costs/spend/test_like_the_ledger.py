"""What the rows come to is what the pure reckoning of the same intervals comes to, for any intervals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import TruncMonth
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.costs.ledger.charges import Rules, charges_of, lines_of, with_minimums
from fleet.costs.ledger.intervals import Interval, Meter, Price, Unit
from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.models import CostDay, CostProgress
from fleet.costs.spend.roll import sum_costs
from fleet.inventory.models import Instance
from tests.fleet.costs.spend.ledger_rows import charged

BEGIN = datetime(2026, 1, 20, tzinfo=UTC)
UNTIL = datetime(2026, 4, 10, 13, 37, 11, tzinfo=UTC)
RULES = Rules(quantum_seconds=60, minimum_seconds=1800)
UNITS = {
    Meter.COMPUTE: Unit.HOUR,
    Meter.DISK_RUNNING: Unit.GB_MONTH,
    Meter.LICENCE: Unit.MONTH,
    Meter.UNKNOWN: Unit.NONE,
}

meters = st.sampled_from(list(UNITS))
lengths = st.one_of(st.integers(1, 7200), st.integers(1, 40 * 86_400))
prices = st.one_of(st.none(), st.decimals("0", "99", places=10, allow_nan=False))
quantities = st.decimals("0.000001", "2000", places=6, allow_nan=False)


@st.composite
def ledgers(draw) -> list[Interval]:
    """One interval after another of some meters, with gaps; the last one of a meter may go on."""
    found: list[Interval] = []
    for meter in draw(st.sets(meters, min_size=1)):
        start = BEGIN + timedelta(seconds=draw(st.integers(0, 86_400)))
        for run in range(draw(st.integers(1, 4))):
            start += timedelta(seconds=draw(st.sampled_from([0, 1, 3599, 86_400])))
            end = start + timedelta(seconds=draw(lengths))
            unit = UNITS[meter]
            price = Price(unit, None if unit is Unit.NONE else draw(prices), draw(quantities), "USD")
            found.append(Interval("m", meter, price, start, end, run=run))
            start = end
        if draw(st.booleans()):
            last = found.pop()
            found.append(Interval("m", meter, last.price, last.start, None, run=last.run))
    return found


def write(machine: Instance, intervals: Sequence[Interval]) -> None:
    for one in intervals:
        charged(
            machine,
            one.meter,
            one.start,
            one.end,
            one.price.unit_price,
            unit=one.price.unit,
            quantity=one.price.quantity,
            resource=f"run {one.run}" if one.meter is Meter.MINIMUM else "",
            run=one.run,
        )


def test_any_ledger_comes_to_the_same(acme, make_instance):
    machine = make_instance(name="m", gpus=1)

    @given(ledgers())
    @settings(max_examples=25, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def compare(intervals: list[Interval]) -> None:
        with transaction.atomic():
            write(machine, list(with_minimums(intervals, RULES)))
            sum_costs(now=UNTIL)
            assert verify_sums(acme) == []
            assert_same(intervals)
            transaction.set_rollback(True)
        CostProgress.objects.all().delete()

    compare()


def assert_same(intervals: list[Interval]) -> None:
    expected = {
        (one.meter.value, one.month.date()): one for one in lines_of(charges_of(intervals, rules=RULES, until=UNTIL))
    }
    rows = (
        CostDay.objects.annotate(month=TruncMonth("day"))
        .values("meter", "month")
        .annotate(total=Sum("amount"), lasted=Sum("seconds"), unpriced=Sum("unpriced_seconds"))
    )
    found = {(row["meter"], row["month"]): row for row in rows}
    assert set(found) == set(expected)
    for key, line in expected.items():
        assert abs(found[key]["total"] - line.amount) <= Decimal("1e-9"), key
        assert round(found[key]["lasted"]) == line.seconds
        assert round(found[key]["unpriced"]) == line.unpriced_seconds
