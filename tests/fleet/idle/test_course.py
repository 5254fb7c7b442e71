"""The course of an idle stop: the way to the end, every way back, and what may never happen, over random worlds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.idle.shutdown.course import Act, Course, Facts, Hook, Stage, Terms, advance, against

START = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
TERMS = Terms()
MINUTE = timedelta(minutes=1)


def quiet(minutes, **changes):
    now = START + minutes * MINUTE
    return Facts(now=now, **{"idle": True, "judged_at": now, "delivered": True, **changes})


def through(*steps: Facts, course: Course | None = None, terms: Terms = TERMS) -> tuple[Course, list[Act]]:
    """Where the facts lead, one after the other, and all that was to be done."""
    course = course or Course()
    done: list[Act] = []
    for facts in steps:
        course, acts = advance(course, facts, terms)
        done += acts
    return course, done


WARNED, _ = through(quiet(0))
GRACE, _ = through(quiet(1), course=WARNED)
PRESTOP, _ = through(quiet(31), course=GRACE)
STOPPING, _ = through(quiet(32, hook=Hook.DONE), course=PRESTOP)
VERIFYING, _ = through(quiet(33), course=STOPPING)


def test_the_whole_way():
    course, done = through(
        quiet(0),
        quiet(1),
        quiet(20),
        quiet(31),
        quiet(32, hook=Hook.RUNNING),
        quiet(33, hook=Hook.DONE),
        quiet(34),
        quiet(35, off_and_unbilled=False),
        quiet(36, off_and_unbilled=True),
    )
    assert course.stage is Stage.STOPPED
    assert done == [Act.WARN, Act.RUN_HOOK, Act.ORDER, Act.READ, Act.READ, Act.TELL_STOPPED]


@pytest.mark.parametrize("course", [WARNED, GRACE, PRESTOP])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"idle": False}, "active"),
        ({"idle": None}, "unknown"),
        ({"held": True}, "held"),
        ({"snoozed_until": START + 300 * MINUTE}, "snoozed"),
    ],
)
def test_use_and_words_lead_back_and_are_told_to_who_was_warned(course, changes, why):
    back, done = advance(course, quiet(32, **changes), TERMS)
    assert (back.stage, back.why) == (Stage.WATCHING, why)
    assert done == (Act.TELL_CANCELLED,)


def test_a_snooze_and_a_veto_give_rest_before_the_next_warning():
    snoozed, _ = advance(GRACE, quiet(10, snoozed_until=START + 100 * MINUTE), TERMS)
    assert through(quiet(50, snoozed_until=None), course=snoozed) == (snoozed, [])
    assert through(quiet(101), course=snoozed)[1] == [Act.WARN]
    held, _ = advance(GRACE, quiet(10, held=True), TERMS)
    assert through(quiet(30), course=held) == (held, [])
    assert through(quiet(71), course=held)[1] == [Act.WARN]


def test_a_warning_that_reaches_nobody_stops_nothing():
    course, done = through(*(quiet(minute, delivered=False) for minute in range(1, 40)), course=WARNED)
    assert (course.stage, course.why, done) == (Stage.WATCHING, "undelivered", [Act.TELL_CANCELLED])


def test_a_failed_hook_keeps_the_machine_unless_the_policy_says_otherwise():
    assert through(quiet(32, hook=Hook.FAILED), course=PRESTOP)[0].why == "hook_failed"
    assert through(quiet(42, hook=Hook.RUNNING), course=PRESTOP)[0].why == "hook_failed"
    bold = replace(TERMS, stop_without_hook=True)
    assert through(quiet(42, hook=Hook.RUNNING), course=PRESTOP, terms=bold)[1] == [Act.ORDER]


def test_nothing_is_ordered_on_old_evidence():
    before = quiet(32, hook=Hook.DONE, judged_at=START + 30 * MINUTE)
    assert advance(PRESTOP, before, TERMS) == (PRESTOP, ())
    stale = quiet(36, hook=Hook.DONE, judged_at=START + 32 * MINUTE)
    assert advance(PRESTOP, stale, TERMS) == (PRESTOP, ())


def test_a_job_picked_up_between_check_and_order_is_not_stopped():
    assert advance(PRESTOP, quiet(32, hook=Hook.DONE, held=True), TERMS)[1] == (Act.TELL_CANCELLED,)


def test_a_stop_that_does_not_happen_is_told_at_once_and_every_hour_and_tried_again():
    failed, done = through(quiet(44, off_and_unbilled=False), course=VERIFYING)
    assert (failed.stage, done) == (Stage.FAILED, [Act.TELL_FAILED])
    again, done = through(quiet(55, off_and_unbilled=False), course=failed)
    assert (again.stage, again.orders, done) == (Stage.STOPPING, 2, [Act.ORDER])
    blind = [quiet(minute, idle=None, off_and_unbilled=False) for minute in range(45, 180)]
    assert through(*blind, course=failed)[1].count(Act.TELL_FAILED) == 2


def test_it_is_told_every_hour_also_while_another_order_is_being_proved():
    failed, _ = through(quiet(44, off_and_unbilled=False), course=VERIFYING)
    _course, done = through(*(quiet(minute, off_and_unbilled=False) for minute in range(45, 44 + 181)), course=failed)
    assert done.count(Act.TELL_FAILED) == 3
    assert done.count(Act.ORDER) > 3


def test_a_failed_stop_ends_when_the_provider_shows_it_or_work_returns():
    failed, _ = through(quiet(44), course=VERIFYING)
    assert advance(failed, quiet(50, off_and_unbilled=True), TERMS)[1] == (Act.TELL_STOPPED,)
    assert advance(failed, quiet(50, idle=False), TERMS)[0].stage is Stage.WATCHING


FACTS = st.builds(
    Facts,
    now=st.integers(0, 300).map(lambda minutes: START + minutes * MINUTE),
    idle=st.sampled_from([True, True, True, False, None]),
    judged_at=st.none() | st.integers(0, 300).map(lambda minutes: START + minutes * MINUTE),
    held=st.sampled_from([False, False, False, True]),
    snoozed_until=st.none() | st.integers(0, 300).map(lambda minutes: START + minutes * MINUTE),
    delivered=st.booleans(),
    hook=st.sampled_from(list(Hook)),
    off_and_unbilled=st.none() | st.booleans(),
    refused=st.booleans(),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(FACTS, st.booleans(), st.booleans()), max_size=40), st.booleans())
def test_over_random_worlds_with_crashes_and_clocks_that_move(world, bold):
    """Facts in any order of time, steps that are lost before or after they are written down."""
    terms = replace(TERMS, stop_without_hook=bold)
    course = Course()
    for facts, lost_before, twice in world:
        if lost_before:
            continue
        after, acts = advance(course, facts, terms)
        if Act.ORDER in acts:
            assert course.delivered_at is not None
            assert not facts.held
            assert not against(facts)
            assert facts.judged_at is not None
            assert facts.now - facts.judged_at <= terms.fresh
            assert after.orders == course.orders + 1
        if after.stage is Stage.STOPPED:
            assert course.stage is Stage.STOPPED or facts.off_and_unbilled
        if after.stage is Stage.GRACE and course.stage is not Stage.GRACE:
            assert facts.delivered
            assert after.deadline == facts.now + terms.grace
        course = after
        if twice and course.stage in {Stage.GRACE, Stage.STOPPED}:
            assert advance(course, facts, terms)[1] in {(), (Act.TELL_CANCELLED,)}
