"""How long a balance lasts, and when that is worth an alert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.costs.balances.runway import Lasts, at_rate, lasts, severity_of, spent_between
from fleet.costs.forecast.reckoning.inputs import OpenRate
from fleet.costs.ledger.intervals import Meter, Unit

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_what_was_read_is_spent_since():
    found = lasts(amount=Decimal(120), read_at=NOON - 2 * HOUR, per_hour=Decimal(10), now=NOON)
    assert (found.left, found.hours, found.ends_at) == (Decimal(100), Decimal(10), NOON + 10 * HOUR)


def test_over_a_change_of_clocks_hours_are_real_ones():
    """New York, 1 November 2026: 01:30 comes twice."""
    before = datetime(2026, 11, 1, 4, tzinfo=UTC)
    assert at_rate(Decimal(6), Decimal(1), before).ends_at == before + 6 * HOUR


@pytest.mark.parametrize(
    ("left", "per_hour", "hours"), [("5", "0", None), ("0", "1", 0), ("-3", "1", 0), ("5", "0.000001", None)]
)
def test_nothing_charged_nothing_left_and_for_ever(left, per_hour, hours):
    found = at_rate(Decimal(left), Decimal(per_hour), NOON)
    assert found.hours == hours
    assert (found.ends_at is None) is (hours is None)


@pytest.mark.parametrize(
    ("hours", "stands", "said"),
    [
        ("49", "", ""),
        ("48", "", "warning"),
        ("12", "", "urgent"),
        ("0", "", "urgent"),
        (None, "urgent", ""),
        ("50", "warning", "warning"),
        ("53", "warning", ""),
        ("13", "urgent", "urgent"),
        ("14", "urgent", "warning"),
        ("13", "warning", "warning"),
    ],
)
def test_what_is_told_ends_a_tenth_above_its_limit(hours, stands, said):
    found = Lasts(Decimal(1), None if hours is None else Decimal(hours), None)
    assert severity_of(found, warning_hours=48, urgent_hours=12, stands=stands) == said


class TestLedger:
    def rate(self, unit, price, start, end=None, quantity=1):
        return OpenRate(1, Meter.COMPUTE, unit, Decimal(price), start, Decimal(quantity), end)

    def test_hours_and_months_within_the_span(self):
        rates = [
            self.rate(Unit.HOUR, 3, NOON - 10 * HOUR),
            self.rate(Unit.HOUR, 5, NOON - 3 * HOUR, NOON - 2 * HOUR),
            self.rate(Unit.GB_MONTH, "0.1", NOON - 720 * HOUR, quantity=720),
            self.rate(Unit.HOUR, 100, NOON + HOUR),
        ]
        assert spent_between(rates, NOON - 4 * HOUR, NOON) == pytest.approx(Decimal("17.4"))

    def test_what_is_charged_once(self):
        once = self.rate(Unit.ONCE, 8, NOON - 4 * HOUR, NOON)
        assert spent_between([once], NOON - HOUR, NOON) == 2
        open_one = self.rate(Unit.ONCE, 8, NOON - 4 * HOUR)
        assert spent_between([open_one], NOON - 5 * HOUR, NOON) == 8
        assert spent_between([open_one], NOON - HOUR, NOON) == 0
