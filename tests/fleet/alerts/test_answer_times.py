"""How fast people answer: from what happened alone, in one query, and unknown where nothing happened."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.alerts.answering import AnswerTimes, Spread, answer_times
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Severity
from fleet.alerts.people import acknowledge_alert, resolve_note, snooze_alert
from fleet.alerts.windows import add_window
from fleet.inventory.models import Instance
from tests.fleet.alerts.conftest import minutes


@pytest.fixture
def course(acme, make_instance, alice, by):
    """course("a", answered=7, ended=50) is an alert that opens at noon and goes on like that, in minutes."""
    machines: dict[str, Instance] = {}

    def go(name, *, severity="urgent", opened=0, answered=None, ended=None, why="evidence", cause="gpu.lost"):
        machine = machines.get(name) or machines.setdefault(name, make_instance(name=name))
        about = {"team": acme, "cause": cause, "subject": f"instance:{machine.pk}"}
        alert = raise_event(**about, severity=severity, instance=machine, now=minutes(opened))
        if answered is not None:
            acknowledge_alert(actor=by(alice), alert=alert, now=minutes(answered))
        if ended is not None:
            clear_event(**about, now=minutes(ended), why=why)
        return alert

    return go


def times(acme, at=1_000) -> AnswerTimes:
    return answer_times(team=acme, now=minutes(at))


def spread(count, median, worst) -> Spread:
    return Spread(count, timedelta(minutes=median), timedelta(minutes=worst))


def test_median_and_worst_by_severity(course, acme):
    for name, answered, ended in (("a", 5, 20), ("b", 9, 30), ("c", 60, 600), ("d", None, 40)):
        course(name, answered=answered, ended=ended)
    course("e", severity="warning", answered=100)
    found = times(acme).by_severity
    assert found[Severity.URGENT].acknowledged == spread(3, 9, 60)
    assert found[Severity.URGENT].resolved == spread(4, 35, 600)
    assert found[Severity.URGENT].by_itself == 1
    assert found[Severity.WARNING].acknowledged == spread(1, 100, 100)
    assert found[Severity.WARNING].resolved == Spread()


def test_where_nothing_happened_it_is_unknown_and_not_at_once(acme):
    nothing = times(acme)
    assert [answers.acknowledged.median for answers in nothing.by_severity.values()] == [None, None, None]
    assert (nothing.resolved, nothing.snoozed) == (0, 0)


def test_each_coming_back_is_a_course_of_its_own(course, acme):
    course("a", answered=4, ended=10)
    course("a", opened=20, answered=26, ended=40)
    assert times(acme).by_severity[Severity.URGENT].acknowledged == spread(2, 5, 6)
    assert times(acme).by_severity[Severity.URGENT].resolved == spread(2, 15, 20)


def test_it_counts_with_its_worst_severity(course, acme):
    course("a", severity="warning")
    course("a", opened=30, severity="urgent", answered=45)
    found = times(acme).by_severity
    assert (found[Severity.URGENT].acknowledged.count, found[Severity.WARNING].acknowledged.count) == (1, 0)


def test_people_answer_from_when_they_were_told(course, acme, alice, by, fleet, cloud):
    machine = fleet.add(cloud, "node-1")
    add_window(
        actor=by(alice), team=acme, now=minutes(-1), instance=machine, starts_at=minutes(-0.5), ends_at=minutes(60)
    )
    fleet.evaluate()
    fleet.gpu = {"lost": True}
    fleet.pass_time(3_700, step=50)
    alert = machine.alerts.get()
    assert alert.announced_at >= minutes(60)
    acknowledge_alert(actor=by(alice), alert=alert, now=alert.announced_at + timedelta(minutes=3))
    assert times(acme).by_severity[Severity.URGENT].acknowledged == spread(1, 3, 3)


def test_what_became_part_of_an_outage_has_not_ended_and_a_note_put_away_has_not_by_itself(course, acme, alice, by):
    course("a", ended=10, why="folded")
    resolve_note(actor=by(alice), alert=course("b", severity="note", cause="memory.full"), now=minutes(5))
    found = times(acme)
    assert found.by_severity[Severity.URGENT].resolved == Spread()
    assert (found.resolved, found.by_itself) == (1, 0)


def test_snoozes_that_came_back_worse_are_counted(course, acme, alice, by):
    for name in ("a", "b"):
        snooze_alert(actor=by(alice), alert=course(name, severity="warning"), now=minutes(1), until=None)
    course("a", severity="urgent", opened=9)
    assert (times(acme).snoozed, times(acme).came_back_worse) == (2, 1)


def test_only_the_last_thirty_days_and_only_the_team_s_own(course, acme, rival):
    course("a", answered=5, ended=20)
    assert times(acme, at=31 * 24 * 60).resolved == 0
    assert answer_times(team=rival, now=minutes(100)).resolved == 0


def test_it_is_one_query_however_much_happened(course, acme):
    for name in "abcdef":
        course(name, answered=5, ended=20)
    with CaptureQueriesContext(connection) as captured:
        times(acme)
    assert len(captured) == 1


def test_the_page_says_it_beside_the_inbox(acme, alice, by, as_user, make_instance):
    page = as_user(alice)
    assert page.get("/t/acme/alerts/").text.count('class="unk"') >= 7
    machine, now = make_instance(name="train-01"), timezone.now()
    alert = raise_event(
        team=acme, cause="gpu.lost", subject="x", severity="urgent", instance=machine, now=now - timedelta(minutes=9)
    )
    acknowledge_alert(actor=by(alice), alert=alert, now=now - timedelta(minutes=2))
    assert re.search(r"<dt>Urgent, to acknowledged</dt><dd>7 min\s*</dd>", page.get("/t/acme/alerts/").text)
