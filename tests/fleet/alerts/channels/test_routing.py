"""Who hears what."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.alerts.channels.manage import ChannelError, RouteWords, save_route
from fleet.alerts.channels.models import Delivery
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import MaintenanceWindow
from fleet.alerts.people import acknowledge_alert, escalate_alert
from fleet.teams.models import Project
from tests.fleet.alerts.conftest import NOON, minutes

pytestmark = pytest.mark.usefixtures("recorder")


def trouble(team, machine, *, severity="urgent", cause="gpu.lost", at=NOON):
    return raise_event(
        team=team, cause=cause, subject=f"instance:{machine.pk}", severity=severity, instance=machine, now=at
    )


def heard(channel) -> list[str]:
    return [row.event.kind for row in channel.deliveries.order_by("pk")]


@pytest.mark.parametrize(
    ("hears", "told"),
    [
        ({}, True),
        ({"severities": ["urgent"]}, True),
        ({"severities": ["warning", "note"]}, False),
        ({"causes": ["gpu"]}, True),
        ({"causes": ["gpu.lost"]}, True),
        ({"causes": ["gpu.fault", "machine"]}, False),
        ({"only_escalated": True}, False),
    ],
)
def test_kinds_and_severities(acme, machine, make_channel, hears, told):
    channel = make_channel(**hears)
    trouble(acme, machine)
    assert bool(heard(channel)) is told


def test_projects(acme, machine, make_instance, project, make_channel):
    other = Project.objects.create(team=acme, name="Speech", slug="speech")
    channel = make_channel(projects=[project])
    trouble(acme, machine)
    trouble(acme, make_instance(name="a", project=other))
    assert heard(channel) == []
    trouble(acme, make_instance(name="b", project=project))
    assert heard(channel) == ["opened"]


def test_only_my_machines(acme, account, machine, make_instance, bob, make_channel):
    channel = make_channel(owner=bob, only_mine=True)
    trouble(acme, machine)
    assert heard(channel) == []
    own = make_instance(name="bobs", owner=bob, account=account)
    trouble(acme, own)
    assert heard(channel) == ["opened"]
    raise_event(team=acme, cause="provider.outage", subject=f"account:{account.pk}", severity="urgent", account=account, now=NOON)  # fmt: skip
    raise_event(team=acme, cause="network.outage", subject="team", severity="urgent", now=NOON)
    raise_event(team=acme, cause="rackrent.trouble", subject="rackrent", severity="urgent", now=NOON)
    assert [row.alert.cause for row in channel.deliveries.order_by("pk")] == ["gpu.lost", "provider.outage", "network.outage"]  # fmt: skip


def test_a_channel_of_the_team_has_no_machines_of_its_own(make_channel):
    with pytest.raises(ChannelError) as refusal:
        make_channel(only_mine=True)
    assert refusal.value.field == "only_mine"


def test_another_team_hears_nothing(acme, rival, machine, make_channel):
    channel = make_channel(team=rival)
    trouble(acme, machine)
    assert heard(channel) == []


def test_the_end_is_told_to_those_who_heard_of_it_whatever_its_severity_is_then(acme, machine, make_channel):
    urgent, notes = make_channel("urgent", severities=["urgent"]), make_channel("notes", severities=["note"])
    trouble(acme, machine, severity="urgent")
    trouble(acme, machine, severity="warning", at=minutes(1))
    clear_event(team=acme, cause="gpu.lost", subject=f"instance:{machine.pk}", now=minutes(2))
    assert heard(urgent) == ["opened", "improved", "resolved"]
    assert heard(notes) == []


def test_escalation_reaches_those_who_wait_for_it(acme, machine, make_channel, alice, by):
    boss = make_channel(only_escalated=True, severities=["urgent"])
    alert = trouble(acme, machine, severity="warning")
    escalate_alert(actor=by(alice), alert=alert, now=minutes(15))
    assert heard(boss) == ["escalated"]


def test_nobody_is_told_of_what_they_did_themselves(acme, machine, make_channel, alice, bob, by):
    own, team = make_channel("own", owner=bob), make_channel("team")
    alert = trouble(acme, machine)
    acknowledge_alert(actor=by(bob), alert=alert, now=minutes(1))
    assert heard(own) == ["opened"]
    assert heard(team) == ["opened", "acknowledged"]


def test_a_maintenance_window_keeps_everybody_quiet(acme, machine, make_channel):
    channel = make_channel()
    MaintenanceWindow.objects.create(team=acme, instance=machine, starts_at=minutes(-5), ends_at=minutes(60))
    trouble(acme, machine)
    assert heard(channel) == []


def test_two_rules_of_one_channel_tell_it_once(acme, machine, make_channel, alice, by):
    channel = make_channel()
    save_route(actor=by(alice), channel=channel, words=RouteWords(severities=["urgent"]))
    trouble(acme, machine)
    assert heard(channel) == ["opened"]


@pytest.mark.parametrize("machines", [1, 60])
def test_the_number_of_queries_does_not_grow_with_the_events(acme, make_instance, make_channel, machines, django_assert_max_num_queries):  # fmt: skip
    from fleet.alerts.channels.routing import queue_deliveries
    from fleet.alerts.models import AlertEvent

    for number in range(machines):
        trouble(acme, make_instance(name=f"m-{number}", price_per_hour=Decimal(1)))
    for name in ("a", "b", "c"):
        make_channel(name)
    events = list(AlertEvent.objects.select_related("alert"))
    with django_assert_max_num_queries(6):
        queue_deliveries(events)
    assert Delivery.objects.count() == 3 * machines
