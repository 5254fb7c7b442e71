"""What is planned for machines: once per source, told before it is due, called off with a reason, in the calendar of the team."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation

from fleet.alerts.channels.calendar import feed_text, make_feed, sync_calendar
from fleet.alerts.channels.models import CalendarFeed
from fleet.inventory.plans.actions import cancel_action, ended_words, note_told, plan_action
from fleet.inventory.plans.models import PlannedActionVerb
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DUE = NOW + timedelta(hours=24)
BUDGETS = Actor.system("budgets")


@pytest.fixture
def plan(make_instance):
    machine = make_instance()

    def write(source="budget:7"):
        return plan_action(
            actor=BUDGETS,
            instance=machine,
            verb=PlannedActionVerb.STOP,
            due_at=DUE,
            source=source,
            reason="spent",
            now=NOW,
        )

    return write


def test_one_stands_for_a_machine_and_source(plan):
    assert plan() == plan()
    assert plan("budget:8") != plan()
    assert AuditEntry.objects.filter(action="planned_action.write").count() == 2


def test_it_is_called_off_once_and_says_why(plan, alice):
    action = plan()
    assert cancel_action(actor=Actor(alice, "alice", "page"), action=action, reason="it is paid for", now=NOW)
    assert not cancel_action(actor=BUDGETS, action=action, reason="lifted", now=NOW)
    action.refresh_from_db()
    assert (action.state, action.ended_reason, action.ended_by) == ("cancelled", "it is paid for", alice)
    assert AuditEntry.objects.get(action="planned_action.cancel").new == {"reason": "it is paid for"}


def test_what_the_program_says_is_said_in_the_readers_language(plan):
    cancel_action(actor=BUDGETS, action=(action := plan()), reason="lifted", now=NOW)
    action.refresh_from_db()
    with translation.override("zh-hans"):
        assert ended_words(action) != "lifted"
    assert ended_words(action) == "what it was planned for is over"


@pytest.mark.parametrize(("late_hours", "due"), [(0, DUE), (5, DUE + timedelta(hours=5))])
def test_the_notice_counts_from_when_its_owner_was_told(plan, late_hours, due):
    action, told_at = plan(), NOW + timedelta(hours=late_hours)
    assert note_told(action=action, at=told_at, notice=timedelta(hours=24))
    assert not note_told(action=action, at=told_at + timedelta(hours=1), notice=timedelta(hours=24))
    action.refresh_from_db()
    assert (action.notified_at, action.due_at) == (told_at, due)


def test_it_stands_in_the_calendar_and_leaves_it_as_called_off(plan, acme, alice):
    make_feed(actor=Actor(alice, "alice", "page"), team=acme, user=alice, now=NOW)
    action = plan()
    sync_calendar(team=acme, now=NOW)
    assert "SUMMARY:Planned for train-01: stop" in text()
    assert "20261201T120000Z" in text()
    cancel_action(actor=BUDGETS, action=action, reason="lifted", now=NOW)
    sync_calendar(team=acme, now=NOW)
    assert "STATUS:CANCELLED" in text()


def text() -> str:
    return feed_text(CalendarFeed.objects.get()).decode()


def test_the_api_lists_them_and_an_admin_calls_them_off(plan, as_user, alice, bob, charlie):
    action = plan()
    rows = as_user(bob).get("/api/v1/planned-actions/?state=planned").json()["results"]
    assert [(row["instance"], row["due_at"]) for row in rows] == [(action.instance_id, "2026-12-01T12:00:00Z")]
    assert as_user(charlie).get("/api/v1/planned-actions/").json()["results"] == []
    address = f"/api/v1/planned-actions/{action.pk}/cancel/"
    answers = [
        as_user(user).post(address, {"reason": "needed"}, content_type="application/json").status_code
        for user in (bob, charlie, alice, alice)
    ]
    assert answers == [403, 404, 200, 409]


def test_a_reason_is_wanted(plan, as_user, alice):
    answer = as_user(alice).post(f"/api/v1/planned-actions/{plan().pk}/cancel/", {}, content_type="application/json")
    assert (answer.status_code, "reason" in answer.content.decode()) == (400, True)
