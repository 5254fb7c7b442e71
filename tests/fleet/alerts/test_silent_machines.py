"""Machines that go quiet, singly and all at once: the messages that go out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.alerts.models import Alert, AlertEvent
from fleet.inventory.models import Instance, ProviderAccount
from tests.fleet.alerts.conftest import NOON, recorded


@pytest.fixture
def machines(fleet, cloud):
    for number in range(6):
        fleet.add(cloud, f"node-{number}")
    fleet.evaluate()
    return fleet


def test_a_machine_that_goes_quiet_is_raised_within_a_minute_of_the_first_missed_heartbeat(machines):
    machines.pass_time(60)
    last_heard = machines.now
    machines.silent.add("node-1")
    while not machines.events:
        machines.pass_time(10)
    first_missed = last_heard + timedelta(seconds=15)
    assert machines.now - first_missed <= timedelta(seconds=60)
    assert machines.told() == ["machine.unreachable opened"]
    alert = Alert.objects.get()
    assert alert.instance is not None
    assert (alert.instance.name, alert.severity, alert.since) == ("node-1", "urgent", first_missed)


def test_the_provider_is_the_other_witness(machines):
    machines.silent.add("node-1")
    machines.pass_time(120)
    assert Alert.objects.get().evidence["values"]["provider"] == "running"


def test_a_failing_listing_says_nothing_of_now(machines, cloud):
    ProviderAccount.objects.filter(pk=cloud.pk).update(failures=1)
    machines.silent.add("node-1")
    machines.pass_time(120)
    assert Alert.objects.get().evidence["values"]["provider"] == "failing"


@pytest.mark.parametrize("state", ["stopped", "stopping", "terminating", "provisioning"])
def test_a_machine_that_the_provider_shows_off_or_on_its_way_is_not_silent(machines, state):
    Instance.objects.filter(name="node-1").update(state=state)
    machines.silent.add("node-1")
    machines.pass_time(300)
    assert machines.told() == []


def test_it_resolves_when_it_speaks_again_for_a_while(machines):
    machines.silent.add("node-1")
    machines.pass_time(120)
    machines.silent.clear()
    machines.pass_time(120)
    assert machines.told() == ["machine.unreachable opened", "machine.unreachable resolved"]


def test_it_resolves_when_the_provider_shows_that_it_was_switched_off(machines):
    machines.silent.add("node-1")
    machines.pass_time(120)
    Instance.objects.filter(name="node-1").update(state="stopped")
    machines.pass_time(10)
    assert Alert.objects.get().closed_why == "off"


def test_a_machine_that_was_given_back_is_over_too(machines):
    machines.silent.add("node-1")
    machines.pass_time(120)
    Instance.objects.filter(name="node-1").update(gone_at=machines.now)
    machines.pass_time(10)
    assert Alert.objects.get().closed_why == "gone"


def test_a_flapping_agent_is_told_of_a_few_times_and_then_once_that_it_flaps(machines):
    for _ in range(6):
        machines.silent.add("node-1")
        machines.pass_time(120)
        machines.silent.clear()
        machines.pass_time(120)
    told = machines.told()
    cycle = ["machine.unreachable resolved", "machine.unreachable reopened"]
    assert told == ["machine.unreachable opened", *cycle, *cycle, cycle[0], "machine.unreachable flapping"]
    machines.pass_time(2000, step=50)
    assert machines.told()[len(told) :] == ["machine.unreachable resolved"]
    assert Alert.objects.count() == 1


def test_an_outage_of_300_machines_is_one_alert_with_300_signals(fleet, cloud):
    for number in range(300):
        fleet.add(cloud, f"node-{number}", gpus=0)
    fleet.evaluate()
    # The hearts of 300 agents do not beat together: a third falls silent with every evaluation.
    for third in range(3):
        fleet.silent |= {f"node-{number}" for number in range(third, 300, 3)}
        fleet.pass_time(10)
    fleet.pass_time(120)
    assert fleet.told() == ["provider.outage opened"]
    alert = Alert.objects.get()
    assert alert.signals.filter(cleared_at=None).count() == 300
    assert alert.price_per_hour == 300 * 12
    fleet.silent.clear()
    fleet.pass_time(60)
    assert fleet.told() == ["provider.outage opened", "provider.outage resolved"]


def test_machines_that_were_alone_at_first_are_folded_into_the_outage_without_a_word(machines):
    machines.silent = {"node-0", "node-1"}
    machines.pass_time(90)
    assert machines.told() == ["machine.unreachable opened", "machine.unreachable opened"]
    machines.silent = {f"node-{number}" for number in range(6)}
    machines.pass_time(90)
    assert machines.told()[2:] == ["provider.outage opened"]
    assert [recorded(alert)[-1] for alert in Alert.objects.filter(cause="machine.unreachable")] == [
        "resolved:folded",
        "resolved:folded",
    ]


def test_who_stays_silent_after_an_outage_is_an_alert_of_its_own(machines):
    machines.silent = {f"node-{number}" for number in range(6)}
    machines.pass_time(90)
    machines.silent = {"node-3"}
    machines.pass_time(90)
    assert machines.told() == ["provider.outage opened", "machine.unreachable opened", "provider.outage resolved"]


def test_all_providers_quiet_together_are_the_network_and_one_alert(machines, acme):
    other = ProviderAccount.objects.create(team=acme, kind="runpod", name="Other", listed_at=NOON + timedelta(days=1))
    for number in range(6):
        machines.add(other, f"pod-{number}")
    machines.evaluate()
    machines.silent = {machine.name for machine in machines.machines}
    machines.pass_time(90)
    assert machines.told() == ["network.outage opened"]


@pytest.mark.parametrize("jump", [timedelta(hours=3), timedelta(hours=-3)], ids=["forward", "back"])
def test_a_clock_that_jumps_makes_no_machine_silent(machines, jump):
    machines.pass_time(60)
    machines.now += jump
    # Nobody has spoken since the clock was set.
    machines.silent = {machine.name for machine in machines.machines}
    machines.evaluate()
    machines.silent.clear()
    machines.pass_time(180)
    assert not [cause for cause in machines.told() if not cause.startswith("rackrent")]


def test_a_clock_that_jumps_does_not_end_what_goes_on(machines):
    machines.silent.add("node-1")
    machines.pass_time(120)
    machines.now += timedelta(hours=2)
    machines.pass_time(20)
    assert Alert.objects.get(cause="machine.unreachable").is_open


def test_events_come_to_the_channels_as_they_are_written(machines, heard):
    machines.silent.add("node-1")
    machines.pass_time(120)
    assert [event.pk for event in heard] == list(AlertEvent.objects.values_list("pk", flat=True))
