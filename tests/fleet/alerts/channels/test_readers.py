"""Personal channels say no more, and let do no more, than their owner may; incidents that were opened elsewhere end there."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from fleet.alerts.channels.links import Signed, sign
from fleet.alerts.channels.models import Channel, Delivery
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert
from fleet.alerts.people import snooze_alert
from fleet.teams.models import Membership, Role
from tests.fleet.alerts.channels.conftest import work
from tests.fleet.alerts.conftest import NOON, minutes

pytestmark = pytest.mark.usefixtures("clock")


def trouble(team, machine, severity="urgent", at=NOON) -> Alert:
    subject = f"instance:{machine.pk}"
    return raise_event(team=team, cause="gpu.lost", subject=subject, severity=severity, instance=machine, now=at)


def test_a_viewer_gets_no_link_that_acts_and_an_old_one_does_nothing_more(acme, machine, make_channel, recorder, bob, vera):  # fmt: skip
    make_channel("vera's", owner=vera)
    bobs = make_channel("bob's", owner=bob)
    alert = trouble(acme, machine)
    work()
    assert sorted(len(message.acts) for message in recorder.sent) == [0, 1]
    link = f"/a/{sign(Signed(alert.pk, 0, bobs.pk, 'nonce'))}/"
    Membership.objects.filter(user=bob, team=acme).update(role=Role.VIEWER)
    assert Client().post(link, {"action": "acknowledge"}).status_code == 410
    Membership.objects.filter(user=bob, team=acme).update(role=Role.OPERATOR)
    assert Client().post(link, {"action": "acknowledge"}).status_code == 200
    alert.refresh_from_db()
    assert alert.acknowledged_by == bob


def test_nobody_reads_of_whom_a_personal_channel_told(
    acme, make_instance, make_channel, recorder, alice, vera, as_user
):
    make_channel("vera's own", owner=vera)
    now = timezone.now()
    machine = make_instance(name="train-02")
    raise_event(team=acme, cause="gpu.lost", subject="x", severity="urgent", instance=machine, now=now)
    work()
    assert "own" in as_user(vera).get("/t/acme/alerts/").text.split("Told:")[1][:200]
    assert "vera&#x27;s own" not in as_user(alice).get("/t/acme/alerts/").text


@pytest.mark.parametrize("gathers", [True, False])
def test_an_incident_ends_also_where_its_end_is_kept_quiet(acme, machine, make_channel, recorder, alice, by, gathers):
    recorder.gathers = gathers
    channel = make_channel()
    alert = trouble(acme, machine)
    snooze_alert(actor=by(alice), alert=alert, now=minutes(1), until=None)
    clear_event(team=acme, cause="gpu.lost", subject=alert.subject, now=minutes(2))
    kinds = list(channel.deliveries.order_by("pk").values_list("event__kind", flat=True))
    assert kinds == (["opened", "snoozed"] if gathers else ["opened", "snoozed", "resolved"])


def test_an_end_that_is_sent_late_ends_its_own_course(acme, machine, make_channel, recorder):
    recorder.gathers = False
    channel = make_channel()
    alert = trouble(acme, machine)
    clear_event(team=acme, cause="gpu.lost", subject=alert.subject, now=minutes(1))
    trouble(acme, machine, at=minutes(2))
    for _message in range(3):
        work()
        Delivery.objects.update(next_attempt_at=NOON)
        Channel.objects.filter(pk=channel.pk).update(hold_until=None)
    threads = [message.thread.rpartition("-")[2] for message in recorder.sent]
    assert threads == ["0", "0", "1"]
