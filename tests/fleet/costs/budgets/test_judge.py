"""What a budget's figures mean for its thresholds: once a period, with hysteresis, anew after a change and in a new period."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from fleet.costs.budgets.judge import SPENT, Limits, Measure, Spent, Threshold, judge_budget, straight
from fleet.costs.budgets.periods import Period

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
NOVEMBER = Period.month(NOW, ZoneInfo("UTC"))
HALF, MOST, WILL = (
    Threshold(Measure.ACTUAL, 50),
    Threshold(Measure.ACTUAL, 80),
    Threshold(Measure.FORECAST, 100),
)
BUDGET = Limits(Decimal(1000), NOVEMBER, (HALF, MOST, SPENT, WILL))


def judged(spent, forecast=None, crossings=None, *, budget=BUDGET, now=NOW, is_floor=False):
    known = None if forecast is None else Decimal(forecast)
    return judge_budget(budget, Spent(Decimal(spent), is_floor), known, crossings or {}, now)


@pytest.mark.parametrize(
    ("spent", "fired"), [(499, ()), (500, (HALF,)), (799, (HALF,)), (800, (HALF, MOST)), (1000, (HALF, MOST, SPENT))]
)
def test_what_is_spent_reaches_thresholds(spent, fired):
    assert judged(spent).fired == fired


def test_each_fires_once():
    verdict = judged(850, crossings={HALF: True, MOST: True})
    assert (verdict.fired, verdict.again, verdict.standing) == ((), (), {HALF, MOST})


@pytest.mark.parametrize(("spent", "fell"), [(790, ()), (760, ()), (759, (MOST,))])
def test_it_falls_back_only_well_below(spent, fell):
    assert judged(spent, crossings={HALF: True, MOST: True}).fell_back == fell


def test_what_fell_back_after_a_refund_stands_again_and_is_not_new():
    verdict = judged(810, crossings={HALF: True, MOST: False})
    assert (verdict.fired, verdict.again) == ((), (MOST,))


def test_a_forecast_that_sways_fires_once():
    assert judged(10, 1001).fired == (WILL,)
    assert judged(10, 960, {WILL: True}).standing == {WILL}
    assert judged(10, 940, {WILL: True}).fell_back == (WILL,)
    back = judged(10, 1100, {WILL: False})
    assert (back.fired, back.again, back.standing) == ((), (), frozenset())


@pytest.mark.parametrize("crossings", [{}, {WILL: True}, {WILL: False}])
def test_without_enough_history_nothing_of_the_forecast_changes(crossings):
    verdict = judged(10, None, crossings)
    assert (verdict.fired, verdict.fell_back) == ((), ())
    assert (WILL in verdict.standing) is crossings.get(WILL, False)


def test_what_is_at_least_so_much_reaches_and_never_falls_back():
    assert judged(500, is_floor=True).fired == (HALF,)
    assert judged(10, crossings={HALF: True}, is_floor=True).standing == {HALF}


class TestHard:
    HARD = Limits(Decimal(1000), NOVEMBER, (HALF, SPENT), hard=True)

    @pytest.mark.parametrize(
        ("spent", "crossings", "blocks"),
        [(999, {}, False), (1000, {}, True), (960, {SPENT: True}, True), (949, {SPENT: True}, False), (1000, {SPENT: False}, True)],
    )  # fmt: skip
    def test_it_blocks_while_it_is_spent(self, spent, crossings, blocks):
        assert judged(spent, crossings=crossings, budget=self.HARD).blocks is blocks

    def test_a_forecast_blocks_nothing(self):
        assert not judged(10, 5000, budget=Limits(Decimal(1000), NOVEMBER, (SPENT, WILL), hard=True)).blocks

    def test_a_soft_one_blocks_nothing(self):
        assert not judged(5000).blocks


class TestPeriods:
    def test_nothing_stands_outside_it(self):
        for now in (datetime(2026, 10, 31, 23, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)):
            verdict = judged(5000, 5000, {HALF: True}, now=now)
            assert (verdict.fired, verdict.standing, verdict.blocks) == ((), frozenset(), False)

    def test_a_month_begins_in_the_zone_of_the_team(self):
        shanghai = Period.month(datetime(2026, 10, 31, 16, 30, tzinfo=UTC), ZoneInfo("Asia/Shanghai"))
        assert (shanghai.first, shanghai.begins_at) == (date(2026, 11, 1), datetime(2026, 10, 31, 16, tzinfo=UTC))

    @pytest.mark.parametrize(("month", "hours"), [(3, 31 * 24 - 1), (10, 31 * 24 + 1), (11, 30 * 24)])
    def test_a_month_in_which_clocks_change_has_its_real_hours(self, month, hours):
        berlin = Period.month(datetime(2026, month, 15, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
        assert (berlin.ends_at - berlin.begins_at).total_seconds() == hours * 3600
        middle = berlin.begins_at + (berlin.ends_at - berlin.begins_at) / 2
        assert berlin.share_gone(middle) == 0.5

    def test_one_of_ones_own_has_its_last_day_outside(self):
        quarter = Period(date(2026, 11, 10), date(2027, 2, 10), ZoneInfo("America/New_York"))
        assert quarter.begins_at == datetime(2026, 11, 10, 5, tzinfo=UTC)
        assert not quarter.holds(datetime(2027, 2, 10, 5, tzinfo=UTC))
        assert quarter.days_left(datetime(2027, 2, 9, 5, tzinfo=UTC)) == 1


def test_a_straight_line_goes_on_as_the_last_days_did():
    assert straight(Decimal(100), [Decimal(10), Decimal(30)], 2.5) == Decimal(150)
    assert straight(Decimal(100), [], 2.5) is None
