"""What people, time and other rules do to an open alert: the messages that go out, and those that do not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from fleet.alerts import evaluate
from fleet.alerts.choices import update_rule
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert, AlertEvent
from fleet.alerts.people import acknowledge_alert, escalate_alert, resolve_note, snooze_alert, wake_alert
from fleet.alerts.windows import add_window, cancel_window
from fleet.inventory.models import GPU, Instance
from fleet.teams.members import remove_member
from fleet.teams.models import AuditEntry, Membership
from fleet.telemetry.models import GpuLatest
from tests.fleet.alerts.conftest import NOON, minutes, recorded, told


@pytest.fixture
def hot(fleet, cloud):
    """A machine that has been too hot for long enough."""
    fleet.add(cloud, "node-1")
    fleet.evaluate()
    fleet.gpu = {"temperature_celsius": 92.0}
    fleet.pass_time(400, step=50)
    assert fleet.told() == ["gpu.throttled opened"]
    return fleet


def the_alert() -> Alert:
    return Alert.objects.exclude(cause="rackrent.trouble").get()


def change_rule(fleet, by, person, **fields):
    fleet.now += timedelta(seconds=1)
    update_rule(actor=by(person), team=fleet.team, kind="thermal", now=fleet.now, **{"enabled": True, **fields})


def test_a_rule_has_to_fire_for_as_long_as_it_says(fleet, cloud):
    fleet.add(cloud, "node-1")
    fleet.gpu = {"temperature_celsius": 92.0}
    fleet.pass_time(300)
    fleet.gpu = {}
    fleet.pass_time(10)
    fleet.gpu = {"temperature_celsius": 92.0}
    fleet.pass_time(300)
    assert fleet.told() == []
    fleet.pass_time(10)
    assert fleet.told() == ["gpu.throttled opened"]


def test_one_more_gpu_with_the_same_trouble_is_no_news_and_another_rule_is(hot):
    hot.gpu["throttle_reasons"] = 0
    card = GPU.objects.create(instance=hot.machines[0], uuid="GPU-late", index=2)
    GpuLatest.objects.create(gpu=card, sampled_at=hot.now, received_at=hot.now)
    hot.pass_time(400, step=50)
    assert recorded(the_alert()) == ["opened", "signal:joined"]
    hot.gpu["throttle_reasons"] = 0x80
    hot.pass_time(400, step=50)
    assert recorded(the_alert()) == ["opened", "signal:joined", "signal"]


def test_between_the_levels_it_stays_and_below_it_resolves_by_itself(hot):
    hot.gpu = {"temperature_celsius": 86.0}
    hot.pass_time(600, step=50)
    assert the_alert().is_open
    hot.gpu = {"temperature_celsius": 80.0}
    hot.pass_time(50)
    assert the_alert().is_open
    hot.pass_time(20)
    assert the_alert().closed_why == "evidence"


def test_a_machine_that_falls_silent_is_not_all_clear(hot):
    hot.silent = {"node-1"}
    hot.pass_time(600, step=50)
    assert Alert.objects.get(cause="gpu.throttled").is_open


RULE_EDITS = [
    ({"thresholds": {"celsius": 100}}, ["opened", "resolved"], "rule_changed"),
    ({"enabled": False}, ["opened", "resolved"], "rule_off"),
    ({"severity": "urgent"}, ["opened", "worsened"], ""),
    ({"severity": "note"}, ["opened", "improved"], ""),
    ({"thresholds": {"celsius": 90}}, ["opened"], ""),
    ({"for_seconds": 3_600}, ["opened"], ""),
]


@pytest.mark.parametrize(("fields", "messages", "why"), RULE_EDITS, ids=str)
def test_a_rule_that_is_edited_while_it_fires(hot, alice, by, fields, messages, why):
    change_rule(hot, by, alice, **fields)
    hot.pass_time(30)
    assert (told(the_alert()), the_alert().closed_why) == (messages, why)


def test_whoever_works_on_it_hears_no_reminders_and_everybody_hears_when_it_gets_worse(hot, alice, by):
    acknowledge_alert(actor=by(alice), alert=the_alert(), now=hot.now, note="fan ordered")
    hot.pass_time(9_000, step=50)
    assert told(the_alert()) == ["opened", "acknowledged"]
    change_rule(hot, by, alice, severity="urgent")
    hot.pass_time(10)
    assert told(the_alert()) == ["opened", "acknowledged", "worsened"]
    assert the_alert().acknowledged_at is None


def test_a_person_who_leaves_works_on_nothing_any_more(hot, alice, bob, by):
    acknowledge_alert(actor=by(bob), alert=the_alert(), now=hot.now)
    hot.pass_time(20)
    membership = Membership.objects.get(user=bob)
    remove_member(actor=by(alice), membership=membership)
    hot.pass_time(20)
    alert = the_alert()
    assert told(alert) == ["opened", "acknowledged", "woke"]
    assert alert.events.get(kind="woke").values == {"why": "person_left"}
    assert alert.acknowledged_at is None
    # Who acknowledged it stays on record.
    assert alert.events.get(kind="acknowledged").actor == bob


def test_a_snooze_ends_with_its_time(hot, alice, by):
    snooze_alert(actor=by(alice), alert=the_alert(), now=hot.now, until=hot.now + timedelta(minutes=10))
    hot.pass_time(550, step=50)
    assert told(the_alert()) == ["opened", "snoozed"]
    hot.pass_time(100, step=50)
    assert told(the_alert()) == ["opened", "snoozed", "woke"]


@pytest.mark.parametrize("until", [timedelta(hours=4), None], ids=["4 h", "until worse"])
def test_a_snooze_ends_early_when_it_gets_worse(hot, alice, by, until):
    snooze_alert(actor=by(alice), alert=the_alert(), now=hot.now, until=until and hot.now + until)
    hot.pass_time(60)
    change_rule(hot, by, alice, severity="urgent")
    hot.pass_time(10)
    assert told(the_alert()) == ["opened", "snoozed", "woke"]
    assert the_alert().events.get(kind="woke").values == {"why": "worse"}
    assert not the_alert().is_snoozed


def test_what_resolves_while_it_is_snoozed_says_nothing(hot, alice, by):
    snooze_alert(actor=by(alice), alert=the_alert(), now=hot.now, until=None)
    hot.gpu = {}
    hot.pass_time(120)
    assert recorded(the_alert()) == ["opened", "snoozed", "resolved:snoozed"]


def test_a_person_may_end_a_snooze(hot, alice, by):
    snooze_alert(actor=by(alice), alert=the_alert(), now=hot.now, until=None)
    assert wake_alert(actor=by(alice), alert=the_alert(), now=hot.now)
    assert not wake_alert(actor=by(alice), alert=the_alert(), now=hot.now)
    assert told(the_alert()) == ["opened", "snoozed", "woke"]


def test_a_snooze_that_ends_in_the_past_is_refused(hot, alice, by):
    with pytest.raises(ValidationError) as refused:
        snooze_alert(actor=by(alice), alert=the_alert(), now=hot.now, until=hot.now)
    assert list(refused.value.message_dict) == ["until"]


def test_nobody_answers_something_urgent(fleet, cloud):
    fleet.add(cloud, "node-1")
    fleet.gpu = {"lost": True}
    fleet.pass_time(20)
    fleet.pass_time(15 * 60, step=50)
    assert fleet.told() == ["gpu.lost opened", "gpu.lost escalated"]
    fleet.pass_time(65 * 60, step=50)
    assert fleet.told()[2:] == ["gpu.lost reminded"]


def test_a_warning_is_told_again_after_a_day(hot):
    hot.pass_time(10)
    hot.now += timedelta(hours=24)
    hot.pass_time(20)
    assert told(the_alert()) == ["opened", "reminded"]


def test_acts_on_what_has_closed_meanwhile_do_nothing(hot, alice, by):
    alert = the_alert()
    hot.gpu = {}
    hot.pass_time(120)
    actor = by(alice)
    assert not acknowledge_alert(actor=actor, alert=alert, now=hot.now)
    assert not snooze_alert(actor=actor, alert=alert, now=hot.now, until=None)
    assert not escalate_alert(actor=actor, alert=alert, now=hot.now)
    assert not AuditEntry.objects.filter(action__startswith="alert.").exists()


def test_acknowledging_twice_is_one_act(hot, alice, bob, by):
    assert acknowledge_alert(actor=by(alice), alert=the_alert(), now=hot.now, note="mine")
    assert not acknowledge_alert(actor=by(bob), alert=the_alert(), now=hot.now)
    assert the_alert().acknowledged_by == alice
    assert AuditEntry.objects.filter(action="alert.acknowledge").count() == 1


@pytest.mark.parametrize("about", ["machine", "account", "team"])
def test_a_maintenance_window_quiets_the_message_and_not_the_record(fleet, cloud, alice, by, about):
    machine = fleet.add(cloud, "node-1")
    named = {"machine": {"instance": machine}, "account": {"account": cloud}, "team": {}}[about]
    add_window(
        actor=by(alice), team=fleet.team, now=NOON, starts_at=NOON, ends_at=NOON + timedelta(minutes=30), **named
    )
    fleet.gpu = {"lost": True}
    fleet.pass_time(25 * 60, step=50)
    assert recorded(the_alert()) == ["opened:maintenance"]
    fleet.pass_time(6 * 60, step=50)
    assert recorded(the_alert()) == ["opened:maintenance", "woke"]


def test_what_ends_within_a_window_is_never_told(fleet, cloud, alice, by):
    fleet.add(cloud, "node-1")
    add_window(actor=by(alice), team=fleet.team, now=NOON, starts_at=NOON, ends_at=NOON + timedelta(minutes=10))
    fleet.gpu = {"lost": True}
    fleet.pass_time(60)
    fleet.gpu = {"lost": False}
    fleet.pass_time(20 * 60, step=50)
    assert recorded(the_alert()) == ["opened:maintenance", "resolved:maintenance"]


def test_a_window_about_another_machine_and_one_that_was_called_off_quiet_nothing(fleet, cloud, alice, by):
    fleet.add(cloud, "node-1")
    other = fleet.add(cloud, "node-2")
    span: dict[str, Any] = {"now": NOON, "starts_at": NOON, "ends_at": NOON + timedelta(hours=1)}
    add_window(actor=by(alice), team=fleet.team, instance=other, **span)
    window = add_window(actor=by(alice), team=fleet.team, **span)
    assert cancel_window(actor=by(alice), window=window, now=NOON)
    assert not cancel_window(actor=by(alice), window=window, now=NOON)
    Instance.objects.filter(pk=other.pk).update(gone_at=NOON)
    fleet.gpu = {"lost": True}
    fleet.pass_time(20)
    assert told(the_alert()) == ["opened"]


def test_money_is_told_within_a_window_too(fleet, cloud, alice, by):
    fleet.add(cloud, "node-1", expires_at=NOON + timedelta(hours=3))
    add_window(actor=by(alice), team=fleet.team, now=NOON, starts_at=NOON, ends_at=NOON + timedelta(hours=1))
    fleet.pass_time(10)
    assert fleet.told() == ["machine.lease opened"]


WRONG_WINDOWS = [
    ({"starts_at": NOON, "ends_at": NOON}, "ends_at"),
    ({"starts_at": NOON - timedelta(hours=2), "ends_at": NOON - timedelta(hours=1)}, "ends_at"),
]


@pytest.mark.parametrize(("span", "field"), WRONG_WINDOWS)
def test_a_window_that_cannot_be_meant_is_refused_by_its_field(acme, alice, by, span, field):
    with pytest.raises(ValidationError) as refused:
        add_window(actor=by(alice), team=acme, now=NOON, **span)
    assert list(refused.value.message_dict) == [field]


def test_a_window_may_not_name_what_another_team_has(rival, cloud, charlie, by):
    with pytest.raises(ValidationError):
        add_window(
            actor=by(charlie), team=rival, account=cloud, now=NOON, starts_at=NOON, ends_at=NOON + timedelta(hours=1)
        )


def test_a_note_that_was_put_away_stays_away_until_it_fires_anew(fleet, cloud, alice, by):
    machine = fleet.add(cloud, "node-1", managed=False)
    fleet.pass_time(10)
    assert fleet.told() == ["machine.unmanaged opened"]
    assert resolve_note(actor=by(alice), alert=the_alert(), now=fleet.now)
    fleet.pass_time(1_000, step=50)
    assert fleet.told() == ["machine.unmanaged opened"]
    Instance.objects.filter(pk=machine.pk).update(managed=True)
    fleet.pass_time(10)
    Instance.objects.filter(pk=machine.pk).update(managed=False)
    fleet.pass_time(10)
    assert fleet.told()[-1] == "machine.unmanaged reopened"


def test_a_warning_cannot_be_put_away(hot, alice, by):
    with pytest.raises(ValidationError):
        resolve_note(actor=by(alice), alert=the_alert(), now=hot.now)
    assert the_alert().is_open


def break_rule(monkeypatch, kind: str):
    """Its evaluation fails from now on; returns the mending."""
    real = evaluate.chosen_rules

    def fail(*_arguments):
        raise TypeError("a value that nobody thought of")

    def with_a_broken_one(team):
        return [
            replace(one, rule=replace(one.rule, evaluate=fail)) if one.rule.kind == kind else one for one in real(team)
        ]

    monkeypatch.setattr(evaluate, "chosen_rules", with_a_broken_one)
    return lambda: monkeypatch.setattr(evaluate, "chosen_rules", real)


def test_a_rule_that_fails_is_told_of_silences_no_other_and_ends_nothing(fleet, cloud, monkeypatch):
    fleet.add(cloud, "node-1")
    fleet.gpu = {"lost": True}
    fleet.pass_time(10)
    mend = break_rule(monkeypatch, "gpu_lost")
    fleet.gpu = {"lost": False, "temperature_celsius": 95.0}
    fleet.pass_time(400)
    assert sorted(fleet.told()) == ["gpu.lost opened", "gpu.throttled opened", "rackrent.trouble opened"]
    assert Alert.objects.get(cause="gpu.lost").is_open
    mend()
    fleet.gpu = {}
    fleet.pass_time(400)
    assert not Alert.objects.filter(closed_at=None).exists()


def test_evaluating_twice_changes_nothing(hot):
    before = list(AlertEvent.objects.values()), list(Alert.objects.values())
    hot.evaluate()
    hot.evaluate()
    assert (list(AlertEvent.objects.values()), list(Alert.objects.values())) == before


def test_what_higher_slices_raised_is_left_alone(fleet, cloud):
    machine = fleet.add(cloud, "node-1")
    raise_event(team=fleet.team, cause="job.failed", subject="job:1", severity="warning", instance=machine, now=NOON)
    fleet.pass_time(120)
    assert the_alert().is_open
    clear_event(team=fleet.team, cause="job.failed", subject="job:1", now=minutes(3))
    assert not the_alert().is_open


def test_each_team_has_its_own_alerts(hot, rival):
    assert evaluate.evaluate_team(team=rival, now=hot.now) == []
    assert not Alert.objects.filter(team=rival).exists()
