"""Each rule about unusual money by hand-worked numbers: what fires, what does not, and what cannot be told."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from fleet.costs.anomalies.lookback import would_have_fired
from fleet.costs.anomalies.rules import all_rules, burn_rate, idle_share, new_machine, stopped_storage, weekday
from fleet.costs.anomalies.rules.base import TEAM, Day, Facts, NewMachine, StoppedDisk

TODAY = date(2026, 11, 17)  # a Tuesday


def facts(amounts: list[int], *, burn: str | None = None, idle: dict[int, int] | None = None, **more) -> Facts:
    """`amounts` of the days before today, the last one yesterday's; `idle`: days back -> money."""
    days = tuple(
        Day(TODAY - timedelta(days=back), Decimal(amount), Decimal((idle or {}).get(back, 0)))
        for back, amount in zip(range(len(amounts), 0, -1), amounts, strict=True)
    )
    return Facts(TODAY, days, TODAY, None if burn is None else Decimal(burn), **more)


def found(rule, seen: Facts, is_open=(), **own: float):
    return rule.RULE.look(seen, rule.RULE.limits(own), is_open)


STEADY = [240] * 7  # $10 an hour


@pytest.mark.parametrize(
    ("burn", "own", "fires"),
    [
        ("15", {}, True),  # 1.5 times, $120 a day more
        ("14.99", {}, False),
        ("15", {"factor": 2}, False),
        ("15", {"least_a_day": 120}, True),
        ("15", {"least_a_day": 121}, False),
        ("9", {}, False),
    ],
)
def test_the_burn_rate_is_held_against_the_median_of_seven_days(burn, own, fires):
    assert bool(found(burn_rate, facts(STEADY, burn=burn), **own)) is fires


def test_the_burn_rate_says_its_numbers():
    (one,) = found(burn_rate, facts([240, 240, 240, 9_999, 240, 240, 240], burn="25"))
    assert one.values == {"per_hour": "25.00", "usual": "10.00", "factor": "2.5", "a_day": "360.00"}
    assert one.per_hour == 15


@pytest.mark.parametrize(("amounts", "burn"), [([240] * 4, "99"), (STEADY, None), ([], "99")])
def test_without_enough_days_or_a_rate_nothing_can_be_told(amounts, burn):
    assert found(burn_rate, facts(amounts, burn=burn)) is None


def test_a_fleet_that_cost_nothing_for_a_week_fires_by_what_it_costs_now():
    (one,) = found(burn_rate, facts([0] * 7, burn="3"))
    assert (one.values["factor"], one.values["a_day"]) == ("", "72.00")
    assert not found(burn_rate, facts([0] * 7, burn="2"))
    assert not found(burn_rate, facts([0] * 7, burn="0"), least_a_day=0)


@pytest.mark.parametrize(("burn", "fires"), [("14", True), ("13.5", True), ("13.4", False)])
def test_what_is_open_stays_open_until_it_is_well_under_its_level(burn, fires):
    assert bool(found(burn_rate, facts(STEADY, burn=burn), {TEAM})) is fires


@pytest.mark.parametrize(
    ("price", "own", "fires"), [("20", {}, True), ("19.99", {}, False), (None, {}, False), ("2", {"per_hour": 1}, True)]
)
def test_a_new_machine_is_told_by_its_price(price, own, fires):
    machine = NewMachine(7, "train-07", TODAY, None if price is None else Decimal(price))
    looked = found(new_machine, facts([], new_machines=(machine,)), **own)
    assert [(one.subject, one.instance) for one in looked] == ([("instance:7", 7)] if fires else [])


def test_disks_of_stopped_machines_are_added_up_and_the_dearest_named():
    disks = tuple(StoppedDisk(number, f"m{number}", Decimal(10 + number)) for number in range(8))
    (one,) = found(stopped_storage, facts([], stopped=disks))
    assert one.values["per_month"] == "108.00"
    assert one.values["machines"] == 8
    assert [named["machine"] for named in one.values["dearest"]] == ["m7", "m6", "m5", "m4", "m3"]
    assert not found(stopped_storage, facts([], stopped=disks), per_month=109)
    assert not found(stopped_storage, facts([]))


@pytest.mark.parametrize(
    ("idle", "own", "fires"),
    [
        (350, {}, True),  # 35 % where it was 10 %: 25 points of $1,000
        (249, {}, False),
        (250, {}, True),
        (350, {"points": 26}, False),
        (350, {"least_a_day": 251}, False),
        (50, {}, False),
    ],
)
def test_the_idle_share_of_yesterday_is_held_against_the_week_before_it(idle, own, fires):
    before = dict.fromkeys(range(2, 9), 100)
    looked = found(idle_share, facts([1_000] * 8, idle={**before, 1: idle}), **own)
    assert bool(looked) is fires


def test_the_idle_share_says_its_numbers():
    (one,) = found(idle_share, facts([1_000] * 8, idle={1: 350}))
    assert one.values == {"day": "2026-11-16", "percent": 35, "usual": 0, "idle": "350.00", "a_day": "350.00"}


def test_a_day_without_money_has_no_idle_share():
    assert found(idle_share, facts([1_000] * 7 + [0])) is None
    assert found(idle_share, facts([1_000, 1_000, 1_000])) is None


def mondays(*amounts: int) -> list[int]:
    """35 days of $100, with these on the last Mondays; yesterday was one."""
    days = [100] * 35
    for weeks, amount in enumerate(reversed(amounts)):
        days[-1 - 7 * weeks] = amount
    return days


@pytest.mark.parametrize(
    ("amounts", "own", "fires"),
    [
        (mondays(400, 400, 400, 400, 600), {}, True),
        (mondays(400, 400, 400, 400, 599), {}, False),
        (mondays(400, 400, 400, 400, 600), {"least_a_day": 201}, False),
        (mondays(100, 400, 400, 900, 500), {}, False),
        ([100] * 34 + [150], {}, True),
    ],
)
def test_a_day_is_held_against_the_same_weekday_of_four_weeks(amounts, own, fires):
    assert bool(found(weekday, facts(amounts), **own)) is fires


def test_two_weeks_are_too_few_for_a_usual_weekday():
    assert found(weekday, facts([100] * 15)) is None


def test_what_stays_under_its_minimum_fires_when_it_has_grown():
    """Nothing is remembered of a burn rate that is three times the median and worth $20 a day."""
    small = [24] * 7
    assert found(burn_rate, facts(small, burn="2")) == ()
    assert found(burn_rate, facts(small, burn="3.2"))


def test_a_look_back_counts_days_that_follow_each_other_once():
    amounts = [240] * 20 + [480, 480, 240, 240, 480] + [240] * 5
    fired = would_have_fired(burn_rate.RULE, facts(amounts), burn_rate.RULE.limits())
    assert fired.times == 2
    assert [TODAY - day for day in fired.days] == [timedelta(days=back) for back in (10, 9, 6)]
    # Of the first five days too little was known.
    assert fired.judged == 25


def test_a_look_back_finds_machines_on_the_day_they_came():
    machines = tuple(NewMachine(pk, f"m{pk}", TODAY - timedelta(days=pk), Decimal(30)) for pk in (3, 4, 40))
    fired = would_have_fired(new_machine.RULE, facts(STEADY, new_machines=machines), new_machine.RULE.limits())
    assert fired.times == 2


def test_a_look_back_takes_a_month_of_what_disks_cost_on_the_day():
    days = tuple(
        Day(TODAY - timedelta(days=back), Decimal(9), stopped_storage=Decimal(4 if back < 4 else 3))
        for back in range(10, 0, -1)
    )
    fired = would_have_fired(stopped_storage.RULE, Facts(TODAY, days, TODAY, None), {"per_month": 120})
    assert (fired.times, len(fired.days)) == (1, 3)


def test_kinds_and_causes_are_told_apart():
    rules = all_rules()
    assert len({rule.kind for rule in rules}) == len({rule.cause for rule in rules}) == len(rules) == 5
