"""What people get to read when things go wrong in the usual ways: table by table, the messages that go out."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.alerts.channels.models import Delivery
from fleet.alerts.door import clear_event, raise_event
from fleet.teams.members import remove_member
from fleet.teams.models import Membership
from tests.fleet.alerts.channels.conftest import work

pytestmark = pytest.mark.usefixtures("clock")
SILENT, HEARD, BOB_LEAVES = "silent", "heard", "bob leaves"
# (minutes after noon, what happens), and what the team's channel is told.
STORIES = {
    "a machine goes quiet and comes back": (
        [(0, SILENT), (30, HEARD)],
        ["train-01 went quiet", "Resolved: train-01 went quiet"],
    ),
    "a machine goes quiet again within the hour": (
        [(0, SILENT), (10, HEARD), (20, SILENT)],
        ["train-01 went quiet", "Resolved: train-01 went quiet", "Again: train-01 went quiet"],
    ),
    "an agent flaps: the third time is the last word for long": (
        [(0, SILENT), (5, HEARD), (10, SILENT), (15, HEARD), (20, SILENT), (25, HEARD), (30, SILENT), (35, HEARD), (40, SILENT), (45, HEARD)],
        [
            "train-01 went quiet", "Resolved: train-01 went quiet", "Again: train-01 went quiet",
            "Resolved: train-01 went quiet", "Again: train-01 went quiet", "Resolved: train-01 went quiet",
            "Comes and goes: train-01 went quiet",
        ],
    ),
    "a person leaves in the middle": (
        [(0, SILENT), (1, BOB_LEAVES), (30, HEARD)],
        ["train-01 went quiet", "Resolved: train-01 went quiet"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_what_is_told(story, acme, machine, alice, bob, by, recorder, make_channel, clock):
    make_channel()
    happens, told = STORIES[story]
    began = timezone.now()
    subject = f"instance:{machine.pk}"
    for after, what in happens:
        clock.move_to(began + timedelta(minutes=after))
        now = timezone.now()
        if what == SILENT:
            raise_event(team=acme, cause="machine.unreachable", subject=subject, severity="urgent", instance=machine, now=now)  # fmt: skip
        elif what == HEARD:
            clear_event(team=acme, cause="machine.unreachable", subject=subject, now=now)
        else:
            remove_member(actor=by(alice), membership=Membership.objects.get(user=bob))
        work()
    assert recorder.titles == told


def test_an_outage_of_a_provider_over_300_machines_is_one_message(acme, account, recorder, make_channel):
    make_channel()
    for number in range(300):
        raise_event(
            team=acme, cause="provider.outage", subject=f"account:{account.pk}", severity="urgent", account=account,
            signal="silent", detail=f"machine-{number}", scope=f"instance:{number}", price_per_hour=Decimal(2),
            now=timezone.now(),
        )  # fmt: skip
    work()
    (message,) = recorder.sent
    assert message.title == "By hand is out of reach"
    assert dict(message.facts)["Signals"] == "300"
    assert dict(message.facts)["At stake"] == "$600.00 an hour"
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


def test_300_machines_that_go_quiet_one_by_one_are_three_messages_at_most(acme, make_instance, recorder, make_channel, clock):  # fmt: skip
    make_channel()
    for number in range(300):
        machine = make_instance(name=f"m-{number:03}")
        raise_event(team=acme, cause="machine.unreachable", subject=f"instance:{machine.pk}", severity="urgent", instance=machine, now=timezone.now())  # fmt: skip
        if number in {0, 150}:
            work()
            clock.shift(5)
    work()
    assert [message.title.split(":")[0] for message in recorder.sent] == ["m-000 went quiet", "150 alerts", "149 alerts"]  # fmt: skip
