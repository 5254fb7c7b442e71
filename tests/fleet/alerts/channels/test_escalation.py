"""Escalating to somebody by name: who hears of it, when, in which words; by a person, and by itself."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from django.core.exceptions import ValidationError

from fleet.alerts.channels.models import Delivery, Route
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.escalation import policy_of, reachable_members, update_escalation
from fleet.alerts.history import history_of
from fleet.alerts.models import Alert, EscalationPolicy
from fleet.alerts.people import acknowledge_alert, escalate_alert
from fleet.teams.members import remove_member
from fleet.teams.models import AuditEntry, Membership
from tests.fleet.alerts.channels.conftest import work
from tests.fleet.alerts.conftest import NOON, minutes

pytestmark = pytest.mark.usefixtures("recorder")


def trouble(team, machine, *, severity="urgent", at=NOON) -> Alert:
    subject = f"instance:{machine.pk}"
    return raise_event(team=team, cause="gpu.lost", subject=subject, severity=severity, instance=machine, now=at)


def heard(channel) -> list[str]:
    return [row.event.kind for row in channel.deliveries.order_by("pk")]


@pytest.fixture
def bobs(make_channel, bob):
    """It is told of costs alone, once a week."""
    return make_channel("bob's", owner=bob, causes=["machine.price"], digest="weekly")


def test_the_person_is_told_on_their_own_channels_whatever_these_hear_otherwise(acme, machine, make_channel, bobs, alice, bob, vera, by):  # fmt: skip
    team, veras = make_channel("team", severities=["note"]), make_channel("vera's", owner=vera)
    alert = trouble(acme, machine, severity="warning")
    assert escalate_alert(actor=by(alice), alert=alert, now=minutes(5), person=bob)
    assert heard(bobs) == heard(team) == ["escalated"]
    assert heard(veras) == ["opened"]
    row = bobs.deliveries.get()
    assert (row.digest, row.next_attempt_at) == (False, minutes(5))


def test_they_hear_how_it_goes_on_and_ends(acme, machine, bobs, alice, bob, by):
    alert = trouble(acme, machine, severity="warning")
    escalate_alert(actor=by(alice), alert=alert, now=minutes(5), person=bob)
    trouble(acme, machine, severity="urgent", at=minutes(6))
    acknowledge_alert(actor=by(alice), alert=alert, now=minutes(7))
    clear_event(team=acme, cause="gpu.lost", subject=alert.subject, now=minutes(8))
    assert heard(bobs) == ["escalated", "worsened", "acknowledged", "resolved"]
    trouble(acme, machine, severity="urgent", at=minutes(9))
    assert heard(bobs)[4:] == []


def test_it_says_so_in_the_message_on_the_page_and_in_the_record(acme, machine, make_channel, recorder, clock, alice, bob, by):  # fmt: skip
    make_channel("bob's", owner=bob, severities=["note"])
    make_channel("team", severities=["note"])
    alert = trouble(acme, machine, severity="warning")
    escalate_alert(actor=by(alice), alert=alert, now=NOON, person=bob)
    work()
    assert sorted(recorder.titles) == ["Escalated to you: train-01 lost a GPU", "Escalated: train-01 lost a GPU"]
    assert all("Escalated to bob" in message.lines for message in recorder.sent)
    assert {message.data["escalated_to"] for message in recorder.sent} == {"bob"}
    newest = history_of(alert)[0]
    assert (newest.event.kind, newest.who, newest.detail) == ("escalated", "alice", "to bob")
    assert AuditEntry.objects.get(action="alert.escalate").new == {"person": "bob"}


@pytest.mark.parametrize(("breaks", "due"), [(True, 23), (False, 31)])
def test_it_breaks_their_quiet_where_urgent_alerts_may(acme, machine, bobs, alice, bob, by, breaks, due):
    bobs.routes.update(quiet_from=time(22), quiet_until=time(7), urgent_breaks_quiet=breaks)
    at = datetime(2026, 11, 30, 23, tzinfo=UTC)
    alert = trouble(acme, machine, severity="warning", at=at)
    escalate_alert(actor=by(alice), alert=alert, now=at, person=bob)
    assert bobs.deliveries.get().next_attempt_at == datetime(2026, 11, 30, tzinfo=UTC) + timedelta(hours=due)


def test_whoever_cannot_be_reached_is_refused_by_name(acme, machine, bobs, make_channel, alice, bob, charlie, vera, by):
    alert = trouble(acme, machine)
    off = make_channel("vera's", owner=vera)
    off.enabled = False
    off.save()
    for person in (charlie, vera, alice):
        with pytest.raises(ValidationError) as refused:
            escalate_alert(actor=by(alice), alert=alert, now=NOON, person=person)
        assert list(refused.value.message_dict) == ["person"]
        assert person.username in str(refused.value)
    Route.objects.filter(channel=bobs).delete()
    assert list(reachable_members(acme)) == []
    assert Alert.objects.get().escalated_at is None


def test_escalating_twice_to_the_same_person_tells_them_once_and_to_another_tells_that_one(acme, machine, bobs, make_channel, alice, bob, vera, by):  # fmt: skip
    veras = make_channel("vera's", owner=vera, severities=["note"])
    alert = trouble(acme, machine)
    assert escalate_alert(actor=by(alice), alert=alert, now=minutes(1), person=bob)
    assert not escalate_alert(actor=by(alice), alert=alert, now=minutes(2), person=bob)
    assert escalate_alert(actor=by(alice), alert=alert, now=minutes(3), person=vera)
    assert (heard(bobs), heard(veras)) == (["escalated"], ["escalated"])
    assert Alert.objects.get().escalated_to == vera


@pytest.fixture
def lost(fleet, cloud):
    fleet.add(cloud, "node-1")
    fleet.evaluate()
    fleet.gpu = {"lost": True}
    return fleet


def kinds(alert: Alert) -> list[tuple[str, dict[str, object]]]:
    return [(event.kind, event.values) for event in alert.events.order_by("pk")]


def test_what_nobody_answers_goes_to_the_chosen_person_by_itself(lost, acme, bobs, alice, bob, by):
    update_escalation(actor=by(alice), team=acme, now=NOON, after_minutes=5, person=bob)
    lost.pass_time(5 * 60)
    assert heard(bobs) == []
    lost.pass_time(20)
    assert heard(bobs) == ["escalated"]
    (alert,) = Alert.objects.filter(cause="gpu.lost")
    assert kinds(alert)[-1] == ("escalated", {"to": "bob", "person": bob.pk, "after_minutes": 5})
    assert history_of(alert)[0].detail == "to bob, nobody answered for 5 minutes"


@pytest.mark.parametrize("case", ["acknowledged", "a warning", "switched off"])
def test_what_is_answered_or_not_urgent_or_not_wanted_does_not_escalate(lost, acme, bobs, alice, bob, by, case):
    update_escalation(
        actor=by(alice), team=acme, now=NOON, after_minutes=None if case == "switched off" else 5, person=bob
    )
    if case == "a warning":
        lost.gpu = {"temperature_celsius": 95.0}
    lost.pass_time(60)
    if case == "acknowledged":
        acknowledge_alert(actor=by(alice), alert=Alert.objects.get(), now=lost.now)
    lost.pass_time(30 * 60, step=30)
    assert "escalated" not in [event.kind for event in lost.events]


def test_a_person_who_left_is_not_waited_for(lost, acme, bobs, alice, bob, by):
    """What was escalated to them escalates again, to whoever stands behind."""
    update_escalation(actor=by(alice), team=acme, now=NOON, after_minutes=5, person=bob)
    lost.pass_time(6 * 60)
    assert Alert.objects.get().escalated_to == bob
    remove_member(actor=by(alice), membership=Membership.objects.get(user=bob, team=acme))
    lost.pass_time(20)
    alert = Alert.objects.get()
    assert (alert.escalated_to, alert.escalated_at) == (None, lost.now - timedelta(seconds=10))
    assert kinds(alert)[-1] == ("escalated", {"after_minutes": 5})
    assert not Delivery.objects.filter(channel__owner=bob).exists()


@pytest.mark.parametrize(("fields", "wrong"), [({"after_minutes": 0}, "after_minutes"), ({"after_minutes": 1441}, "after_minutes"), ({"person": "vera"}, "person")])  # fmt: skip
def test_a_choice_that_cannot_be_meant_is_refused_by_its_field(acme, alice, vera, by, fields, wrong):
    chosen = {"after_minutes": 15, "person": None, **fields}
    chosen["person"] = vera if chosen["person"] else None
    with pytest.raises(ValidationError) as refused:
        update_escalation(actor=by(alice), team=acme, now=NOON, **chosen)
    assert list(refused.value.message_dict) == [wrong]
    assert not EscalationPolicy.objects.exists()


def test_a_choice_is_on_record_once(acme, alice, bob, bobs, by):
    for _again in range(2):
        update_escalation(actor=by(alice), team=acme, now=NOON, after_minutes=5, person=bob)
    entry = AuditEntry.objects.get(action="alert_escalation.update")
    assert (entry.old, entry.new) == ({"after_minutes": 15, "person": ""}, {"after_minutes": 5, "person": "bob"})
    assert policy_of(acme).person == bob
