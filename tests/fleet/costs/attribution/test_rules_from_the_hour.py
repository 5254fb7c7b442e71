"""Rules and what people set hold from the full hour in which they are made; what was before stays as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
import time_machine

from fleet.costs.attribution.models import AttributionRule, AttributionSpan
from fleet.costs.attribution.rules import RuleSaid, change_rule, end_rule, move_rule
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.attribution.tasks import attribute
from fleet.costs.book.models import LedgerChange
from fleet.inventory.machines import place_hold, release_hold, update_machine
from fleet.inventory.models import HoldKind
from fleet.teams.members import remove_member
from fleet.teams.models import Membership, Project
from fleet.teams.projects import archive_project
from tests.fleet.costs.attribution.conftest import HOUR, MINUTE, NOON, told


@pytest.fixture
def speech(acme):
    return Project.objects.create(team=acme, name="Speech", slug="speech")


def test_a_machine_belongs_from_its_first_hour(acme, machine):
    instance = machine(since=NOON - 2 * HOUR + 20 * MINUTE)
    assert sync_attribution(team=acme, now=NOON) == 1
    assert told(instance) == [(-2, None, "", "", "machine")]
    assert sync_attribution(team=acme, now=NOON + HOUR) == 0


def test_the_provider_knows_better_when_it_began(acme, machine):
    instance = machine(since=NOON, provider_created_at=NOON - 3 * HOUR - MINUTE)
    sync_attribution(team=acme, now=NOON)
    assert told(instance)[0][0] == -4


def test_a_rule_holds_from_its_hour_on(acme, machine, project, rule):
    instance = machine()
    sync_attribution(team=acme, now=NOON - HOUR)
    made = rule(project=project, name_pattern="train-*", now=NOON + 20 * MINUTE)
    assert told(instance) == [(-100, 0, "", "", "machine"), (0, None, "Vision", "", "rule")]
    assert AttributionSpan.objects.get(rule=made).period.lower == NOON


def test_two_changes_within_an_hour_leave_the_last(acme, machine, project, speech, rule, alice, by):
    instance = machine()
    sync_attribution(team=acme, now=NOON - HOUR)
    made = rule(project=project, now=NOON + MINUTE)
    fresh = change_rule(actor=by(alice), rule=made, said=RuleSaid(project=speech), now=NOON + 30 * MINUTE)
    assert told(instance) == [(-100, 0, "", "", "machine"), (0, None, "Speech", "", "rule")]
    assert AttributionSpan.objects.get(period__upper_inf=True).rule == fresh


def test_a_changed_rule_is_another_rule_and_history_names_the_old_one(acme, machine, project, speech, rule, alice, by):
    instance = machine()
    made = rule(project=project)
    fresh = change_rule(actor=by(alice), rule=made, said=RuleSaid(project=speech), now=NOON + 5 * HOUR)
    made.refresh_from_db()
    assert (made.project, made.ended_at, made.ended_by) == (project, NOON + 5 * HOUR, alice)
    assert fresh is not None
    assert (fresh.order, fresh.replaces) == (made.order, made)
    # A machine that no rule had been asked about before is whose it is now, from its first hour on.
    assert told(instance) == [(-100, 5, "Vision", "", "rule"), (5, None, "Speech", "", "rule")]
    assert [span.rule for span in AttributionSpan.objects.order_by("period")] == [made, fresh]
    assert change_rule(actor=by(alice), rule=made, said=RuleSaid(project=speech), now=NOON + 6 * HOUR) is None


def test_an_ended_rule_decides_nothing_more(acme, machine, project, rule, alice, by):
    instance = machine()
    made = rule(project=project)
    assert end_rule(actor=by(alice), rule=made, now=NOON + 2 * HOUR + MINUTE)
    assert not end_rule(actor=by(alice), rule=made, now=NOON + 3 * HOUR)
    assert told(instance) == [(-100, 2, "Vision", "", "rule"), (2, None, "", "", "machine")]


def test_the_order_of_rules_counts(acme, machine, project, speech, rule, alice, by):
    instance = machine()
    first = rule(project=project)
    second = rule(project=speech)
    assert told(instance)[-1][2] == "Vision"
    assert not move_rule(actor=by(alice), rule=second, up=False, now=NOON)
    assert move_rule(actor=by(alice), rule=second, up=True, now=NOON + 3 * HOUR)
    assert told(instance) == [(-100, 3, "Vision", "", "rule"), (3, None, "Speech", "", "rule")]
    in_force = AttributionRule.objects.filter(ended_at=None).order_by("order")
    assert [(row.order, row.project) for row in in_force] == [(first.order, speech), (second.order, project)]
    assert not move_rule(actor=by(alice), rule=second, up=True, now=NOON + 4 * HOUR)


def test_what_people_set_is_followed_at_once(
    acme, machine, project, rule, alice, bob, by, django_capture_on_commit_callbacks
):
    instance = machine()
    rule(project=project)
    with time_machine.travel(NOON + HOUR + MINUTE, tick=False), django_capture_on_commit_callbacks(execute=True):
        update_machine(actor=by(alice), instance=instance, managed=True, owner=bob, project=None, labels={"a": "b"})
    assert told(instance)[-1] == (1, None, "Vision", "bob", "manual")
    assert AttributionSpan.objects.get(period__upper_inf=True).labels == {"a": "b"}


def test_each_change_asks_for_new_sums_from_its_hour_on(acme, machine, project, rule):
    instance = machine()
    sync_attribution(team=acme, now=NOON - HOUR)
    rule(project=project, now=NOON + MINUTE)
    rows = LedgerChange.objects.order_by("pk").values_list("instance", "account", "from_at")
    assert list(rows) == [
        (instance.pk, instance.account_id, NOON - 100 * HOUR),
        (instance.pk, instance.account_id, NOON),
    ]


def test_whoever_leaves_owns_nothing_from_then_on(acme, machine, alice, bob, by):
    instance = machine(owner=bob)
    sync_attribution(team=acme, now=NOON)
    remove_member(actor=by(alice), membership=Membership.objects.get(user=bob))
    sync_attribution(team=acme, now=NOON + HOUR)
    assert told(instance) == [(-100, 1, "", "bob", "manual"), (1, None, "", "", "machine")]


def test_an_archived_project_keeps_its_machines_and_gets_no_more_by_rule(acme, machine, project, rule, alice, by):
    by_hand, by_rule = machine("mine", project=project), machine("train-01")
    rule(project=project, name_pattern="train-*")
    archive_project(actor=by(alice), project=project)
    sync_attribution(team=acme, now=NOON + HOUR)
    assert told(by_hand) == [(-100, None, "Vision", "", "manual")]
    assert told(by_rule) == [(-100, 1, "Vision", "", "rule"), (1, None, "", "", "rule")]


def test_a_machine_that_is_gone_is_left_alone(acme, machine, project, rule):
    instance = machine()
    sync_attribution(team=acme, now=NOON - HOUR)
    type(instance).objects.update(gone_at=NOON - 30 * MINUTE)
    rule(project=project)
    assert told(instance) == [(-100, None, "", "", "machine")]


def test_a_machine_that_came_and_went_between_two_looks_has_its_hours(acme, machine):
    instance = machine(since=NOON - MINUTE, gone_at=NOON)
    sync_attribution(team=acme, now=NOON)
    assert told(instance) == [(-1, None, "", "", "machine")]


def test_hours_are_of_utc_also_where_clocks_are_put_back(acme, machine, project, rule):
    """In Berlin 02:30 comes twice; each of the two hours can change hands by itself."""
    berlin = ZoneInfo("Europe/Berlin")
    acme.time_zone = "Europe/Berlin"
    acme.save()
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=0)
    second = first.replace(fold=1)
    instance = machine(since=first)
    sync_attribution(team=acme, now=first)
    rule(project=project, now=second)
    bounds = [row.period for row in AttributionSpan.objects.filter(instance=instance).order_by("period")]
    assert [bound.lower for bound in bounds] == [
        datetime(2026, 10, 25, 0, tzinfo=UTC),
        datetime(2026, 10, 25, 1, tzinfo=UTC),
    ]


def test_a_job_that_holds_the_machine_is_named(acme, machine, bob, by):
    instance = machine()
    sync_attribution(team=acme, now=NOON)
    hold = place_hold(
        actor=by(bob), instance=instance, owner=bob, kind=HoldKind.JOB, reason="llama-70b", now=NOON + HOUR + MINUTE
    )
    sync_attribution(team=acme, now=NOON + HOUR + 2 * MINUTE)
    release_hold(actor=by(bob), hold=hold, now=NOON + HOUR + 5 * MINUTE)
    # The hour in which it ran stays its own.
    assert sync_attribution(team=acme, now=NOON + HOUR + 10 * MINUTE) == 0
    sync_attribution(team=acme, now=NOON + 2 * HOUR)
    jobs = AttributionSpan.objects.filter(instance=instance).order_by("period").values_list("job", flat=True)
    assert list(jobs) == ["", "llama-70b", ""]


def test_of_two_jobs_the_one_that_is_there_longest(acme, machine, bob, by):
    instance = machine()
    for name, start in (("late", NOON - MINUTE), ("early", NOON - 5 * MINUTE)):
        place_hold(actor=by(bob), instance=instance, kind=HoldKind.JOB, reason=name, now=start)
    sync_attribution(team=acme, now=NOON)
    assert AttributionSpan.objects.get().job == "early"


def test_the_task_looks_at_every_team(acme, rival, machine):
    machine()
    with time_machine.travel(NOON, tick=False):
        attribute()
    assert AttributionSpan.objects.count() == 1


def test_the_rules_of_one_team_touch_no_other(acme, rival, machine, project, rule, account):
    theirs = machine("theirs", team=rival)
    rule(project=project)
    sync_attribution(team=rival, now=NOON)
    assert told(theirs)[-1][2:] == ("", "", "machine")
