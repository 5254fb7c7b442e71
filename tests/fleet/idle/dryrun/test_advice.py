"""The window that history speaks for: learned on some days, tried on others, and none where stopping does not pay."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleet.idle.backtest.recommend import PRESETS
from fleet.idle.dryrun.advice import Lesson, Why, advise, by_machine, on_days, split_days
from fleet.idle.dryrun.costs import WrongStop
from fleet.idle.dryrun.plain import plain
from fleet.idle.dryrun.quiet import Ending, History, Quiet
from fleet.idle.dryrun.simulate import Terms, simulate

START = datetime(2026, 11, 2, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
DAYS = [(START + number * DAY).date() for number in range(30)]
LESSON = Lesson(Terms(timedelta()), WrongStop(gpu_hours=2.0))


def machine(pk: int, lengths, *, gpus: int = 1, days=30) -> History:
    """`lengths(day)`: minutes of each quiet time of the day, work between them."""
    quiet = []
    for number in range(days):
        at = START + number * DAY
        for minutes in lengths(number):
            quiet.append(Quiet(at, at + minutes * MINUTE, Ending.RETURN))
            at += (minutes + 60) * MINUTE
    return History(pk, gpus, tuple(quiet), days=frozenset(DAYS[:days]))


def pauses(seed: int):
    """Pauses of half an hour, give or take, and most evenings nobody comes back for hours."""
    draw = random.Random(seed)

    def of(_day: int) -> list[int]:
        short = [max(5, round(draw.gauss(30, 10))) for _ in range(6)]
        return [*short, 480] if draw.random() < 0.8 else short

    return of


def fleet(count: int = 8, *, gpus: int = 1) -> list[History]:
    return [machine(pk, pauses(pk), gpus=gpus) for pk in range(count)]


def test_it_waits_until_ordinary_pauses_are_over():
    advice = advise(fleet(), LESSON)
    assert advice.minutes is not None
    assert 40 <= advice.minutes <= 90
    assert advice.why is None


def test_it_is_tried_on_days_that_it_did_not_learn_from():
    """The figures are those of a simulation of the last nine days alone."""
    machines = fleet()
    advice = advise(machines, LESSON)
    assert (advice.learned_days, advice.unseen_days) == (21, 9)
    assert advice.minutes is not None
    stops, _ = simulate(on_days(machines, DAYS[21:]), Terms(advice.minutes * MINUTE))
    assert (advice.unseen.stops, advice.unseen.wrong) == (len(stops), sum(stop.is_wrong for stop in stops))
    assert advice.unseen.back == pytest.approx(sum(stop.gpu_hours for stop in stops))
    assert advice.interval[0] <= advice.unseen.net <= advice.interval[1]


def test_what_loses_on_the_unseen_days_is_not_advised():
    """Three weeks of empty nights, and then somebody who comes back each time just after the stop."""
    advice = advise([machine(pk, lambda day: [480, 480] if day < 21 else [20] * 8) for pk in range(4)], LESSON)
    assert advice.minutes is None
    assert advice.why is Why.LOST_DAYS
    assert advice.best is not None
    assert advice.unseen.net < 0


def test_what_half_of_the_machines_teach_must_hold_for_the_other_half():
    def long(_day):
        return [480, 480]

    def caught(_day):
        return [20] * 12

    machines = [machine(pk, long if pk % 2 == 0 else caught) for pk in range(8)]
    advice = advise(machines, LESSON)
    assert advice.machines is not None
    assert (advice.minutes is None) == (advice.machines.net < 0)
    assert advise(machines[:2], LESSON).machines is None


def test_where_every_window_is_caught_it_is_better_not_to_stop():
    draw = random.Random(4)
    busy = [machine(pk, lambda _day: [draw.randrange(5, 60) for _ in range(12)]) for pk in range(6)]
    advice = advise(busy, LESSON)
    assert (advice.minutes, advice.why) == (None, Why.NO_GAIN)


@pytest.mark.parametrize("days", [0, 6])
def test_a_few_days_teach_nothing(days):
    advice = advise([machine(1, pauses(1), days=days)], LESSON)
    assert (advice.minutes, advice.why) == (None, Why.FEW_DAYS)


def test_a_policy_that_covers_nothing_gets_no_advice():
    assert advise([], LESSON).why is Why.FEW_DAYS


def test_who_fears_wrong_stops_more_waits_longer():
    windows = [advise(fleet(16), replace(LESSON, cost=WrongStop(hours))).minutes for hours in sorted(PRESETS.values())]
    known = [minutes for minutes in windows if minutes is not None]
    assert known == sorted(known)
    assert known


def test_eight_gpus_that_stop_together_are_advised_as_one_would_be():
    """Restart time times GPUs: all figures are eight times those of one GPU, and the advice is the same."""
    cost = replace(LESSON, cost=WrongStop(restart_minutes=60))
    one, eight = advise(fleet(), cost), advise(fleet(gpus=8), cost)
    assert one.minutes == eight.minutes
    assert eight.unseen.net == pytest.approx(8 * one.unseen.net)


def test_a_machine_of_another_kind_gets_a_window_of_its_own():
    """Of its pauses none is ordinary: whoever comes back does so long after a stop, so that there is nothing to wait for."""
    other = machine(99, lambda _day: [420, 420])
    advice = advise([*fleet(15), other], LESSON)
    assert advice.minutes is not None
    own = by_machine(advice.own)
    assert own[99] < advice.minutes
    assert all(one.net > one.group_net for one in advice.own)


def test_machines_alike_keep_the_groups_window():
    assert advise(fleet(), LESSON).own == ()


def test_days_are_split_in_the_order_of_time():
    learned, unseen = split_days(DAYS)
    assert max(learned) < min(unseen)
    assert len(unseen) == 9


def test_what_is_kept_of_it_is_plain():
    kept = plain(advise(fleet(), LESSON), cost=LESSON.cost, days=30)
    assert (kept["cost"], kept["why"]) == ({"gpu_hours": 2.0, "restart_minutes": 20.0}, "")
    assert kept["net"] == pytest.approx(kept["back"] - 2 * kept["wrong"], abs=0.11)
