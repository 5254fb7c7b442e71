"""What past days teach: what usually comes and goes, how wide the band is, and whether it holds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.costs.forecast.reckoning.backtest import backtest
from fleet.costs.forecast.reckoning.inputs import Machine, OpenRate, PastDay, Step, Verb
from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.costs.forecast.reckoning.reckon import Forecast, Known, forecast
from fleet.costs.forecast.reckoning.usual import DEFAULT_HIGH, DEFAULT_LOW, learn, origins_of
from fleet.costs.ledger.intervals import Meter, Unit
from tests.fleet.costs.forecast.synthetic import synthetic_history

FIRST = date(2026, 9, 1)
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


def november(known: Known) -> Forecast:
    return forecast(known, now=NOW, month_start=START, month_end=END, zone=UTC)


def past_day(number: int, amount: int, rate: int | None, **by_age: int) -> PastDay:
    ages = {int(age.removeprefix("age")): Decimal(value) for age, value in by_age.items()}
    hourly = None if rate is None else Decimal(rate)
    return PastDay(FIRST + timedelta(days=number), Decimal(amount), (hourly,) * 4, ages)


def launching(days: int) -> list[PastDay]:
    """$240 a day of old machines at $10 an hour; each day one machine comes at $1 an hour for the day after, and is gone then."""
    return [past_day(number, 264, 11, age1=24) for number in range(days)]


def test_what_comes_on_new_machines_and_what_goes_is_told_apart():
    """Seen from any day, its own new machine ($24 a day in its rate) costs $24 the next day; from the second day on others do."""
    origin = next(origins_of(launching(20), hour=12))
    assert origin.rate_per_day == 264
    assert origin.amounts[:4] == (0, 264, 528, 792)
    assert origin.new[:4] == (0, 0, 24, 48)
    assert [origin.going(ahead) for ahead in (1, 2, 3)] == [0, 24, 48]


@pytest.mark.parametrize(("days", "said"), [(13, False), (14, True), (60, True)])
def test_under_fourteen_days_nothing_is_said_of_what_is_usual(days, said):
    usual = learn(launching(days), hour=12, is_weekend=False)
    assert bool(usual.new) is said
    assert usual.measured is said
    if not said:
        assert (usual.low[1], usual.high[1]) == (DEFAULT_LOW, DEFAULT_HIGH)


def test_beyond_what_was_measured_it_goes_on_as_before():
    usual = learn(launching(14), hour=12, is_weekend=False)
    # Six days ahead are the most of which there are eight past forecasts in 14 days.
    assert usual.new[6] == 120
    assert usual.new[12] == 240


def test_a_missing_day_ends_what_can_be_compared():
    history = [one for one in launching(30) if one.day != FIRST + timedelta(days=10)]
    lengths = {origin.day: len(origin.amounts) - 1 for origin in origins_of(history, hour=0)}
    assert lengths[FIRST] == 9
    assert lengths[FIRST + timedelta(days=9)] == 0
    assert lengths[FIRST + timedelta(days=11)] == 18


def test_an_unknown_rate_is_no_forecast():
    history = [past_day(number, 240, None if number % 2 else 10) for number in range(20)]
    assert len(list(origins_of(history, hour=0))) == 10


def test_new_machines_and_those_that_end_are_lines_of_their_own():
    rates = [OpenRate(1, Meter.COMPUTE, Unit.HOUR, Decimal(11), NOW)]
    found = november(Known("USD", {}, rates, history=launching(60)))
    amounts = {part.kind: part.amount for part in found.parts}
    # 14.5 days ahead: 13.5 times $24 either way.
    assert amounts[PartKind.NEW] == Decimal(324)
    assert amounts[PartKind.GOING] == Decimal(-324)
    assert found.will_end == 11 * 348


def test_what_is_known_to_stop_is_a_part_of_what_usually_goes():
    rates = [OpenRate(pk, Meter.COMPUTE, Unit.HOUR, Decimal(1), NOW) for pk in range(11)]
    stops = [Machine(0, (Step(NOW + timedelta(days=4.5), Verb.STOP),))]
    found = november(Known("USD", {}, rates, stops, history=launching(60)))
    amounts = {part.kind: part.amount for part in found.parts}
    assert amounts[PartKind.STOPS] == Decimal(-240)
    assert amounts[PartKind.GOING] == Decimal(-84)


def test_steady_days_have_a_narrow_band():
    history = [past_day(number, 240 + number % 3, 10) for number in range(60)]
    usual = learn(history, hour=12, is_weekend=False)
    assert usual.measured
    assert -0.02 < usual.low[7] <= 0 <= usual.high[7] < 0.02


@pytest.mark.parametrize("seed", range(4))
def test_the_band_holds_eight_of_ten_on_a_fleet_with_a_weekly_rhythm(seed):
    """Walked forward: each forecast knows only the days before it."""
    result = backtest(synthetic_history(seed=seed, days=110))
    assert result.of > 200
    assert 0.7 * result.of <= result.held <= 0.9 * result.of


def test_the_same_band_does_not_hold_when_the_fleet_doubles_overnight():
    history = synthetic_history(seed=1, days=60)
    doubled = [
        PastDay(one.day, one.amount * 3, one.rates, one.by_age) if number >= 45 else one
        for number, one in enumerate(history)
    ]
    assert backtest(doubled).held < backtest(history).held


PRICES = st.decimals(min_value=0, max_value=100, places=4)
MOMENTS = st.integers(min_value=-10, max_value=20).map(lambda days: NOW + timedelta(days=days))
STEPS = st.lists(st.builds(Step, MOMENTS, st.sampled_from(Verb), st.booleans()), max_size=4).map(tuple)
MACHINES = st.builds(
    Machine,
    st.integers(min_value=0, max_value=5),
    STEPS,
    started=st.none() | PRICES,
    on_stop=st.none() | PRICES,
    stops_charging=st.booleans(),
    disks_go_on=st.booleans(),
)
RATES = st.builds(
    OpenRate,
    st.none() | st.integers(min_value=0, max_value=5),
    st.sampled_from([Meter.COMPUTE, Meter.DISK_RUNNING, Meter.DISK_STOPPED, Meter.COMMITMENT]),
    st.sampled_from([Unit.HOUR, Unit.GB_MONTH, Unit.MONTH]),
    PRICES,
    st.just(NOW - timedelta(days=3)),
    end=st.none() | st.integers(min_value=1, max_value=20).map(lambda days: NOW + timedelta(days=days)),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(RATES, max_size=12),
    st.lists(MACHINES, max_size=4, unique_by=lambda machine: machine.pk),
    st.dictionaries(st.integers(min_value=1, max_value=16).map(lambda day: date(2026, 11, day)), PRICES, max_size=16),
    st.sampled_from([0, 10, 14, 40]),
)
def test_parts_add_up_and_the_band_lies_around_the_end(rates, machines, spent, days):
    known = Known("USD", spent, rates, machines, history=synthetic_history(seed=days, days=days))
    found = november(known)
    assert sum((part.amount for part in found.parts), Decimal(0)) == found.will_end
    assert found.spent <= found.low <= found.will_end <= found.high
    assert found.days[-1].amount == found.will_end
    assert 0 <= (found.chance_under(found.will_end) or 0) <= 1
