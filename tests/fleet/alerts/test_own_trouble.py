"""What the worker finds wrong with Rackrent itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError

from fleet.alerts import own
from fleet.alerts.channels.manage import RouteWords, add_channel
from fleet.alerts.channels.models import Channel, Delivery
from fleet.alerts.evaluate import evaluate_team as evaluate_for_real
from fleet.alerts.models import Alert
from fleet.alerts.own import ingest_late, own_troubles, rollups_late
from fleet.alerts.tasks import evaluate
from fleet.inventory.operations.models import Operation
from fleet.telemetry.models import Agent
from fleet.telemetry.rollups.models import RollupProgress
from tests.fleet.alerts.conftest import NOON, minutes


def test_rollups_that_stand_still(db):
    assert rollups_late(NOON) == []
    RollupProgress.objects.create(resolution="5min", rolled_until=minutes(-10))
    assert rollups_late(NOON) == []
    RollupProgress.objects.update(rolled_until=minutes(-20))
    assert [trouble.part for trouble in rollups_late(NOON)] == ["rollups"]


@pytest.mark.parametrize(("late", "expected"), [(6, ["ingest"]), (3, ["ingest"]), (2, []), (0, [])])
def test_hearts_that_beat_while_readings_are_not_taken_in(fleet, cloud, late, expected):
    for number in range(6):
        fleet.add(cloud, f"node-{number}")
    Agent.objects.update(heartbeat_at=NOON, batch_at=NOON)
    Agent.objects.filter(pk__in=Agent.objects.values("pk")[:late]).update(batch_at=minutes(-10))
    assert [trouble.part for trouble in ingest_late(NOON)] == expected


def test_silent_machines_are_not_ingests_fault(fleet, cloud):
    for number in range(6):
        fleet.add(cloud, f"node-{number}")
    Agent.objects.update(heartbeat_at=minutes(-10), batch_at=minutes(-10))
    assert ingest_late(NOON) == []


def test_a_probe_that_fails_is_trouble_and_hides_no_other(db, monkeypatch):
    RollupProgress.objects.create(resolution="5min", rolled_until=minutes(-20))

    def broken(_now):
        raise ValueError

    monkeypatch.setattr(own, "probes", [broken, rollups_late])
    assert [trouble.part for trouble in own_troubles(NOON)] == ["probe", "rollups"]


def test_rules_that_nobody_looked_at_for_a_while(fleet, cloud):
    fleet.add(cloud, "node-1")
    fleet.pass_time(20)
    fleet.now += timedelta(minutes=30)
    fleet.pass_time(60)
    assert fleet.told() == ["rackrent.trouble opened", "rackrent.trouble resolved"]


def test_the_task_goes_on_with_the_next_team_when_one_cannot_be_evaluated(acme, rival, monkeypatch):
    asked = []

    def evaluate_team(*, team, **more):
        asked.append(team.slug)
        if team == acme:
            raise DatabaseError
        return evaluate_for_real(team=team, **more)

    monkeypatch.setattr("fleet.alerts.tasks.evaluate_team", evaluate_team)
    evaluate()
    assert asked == ["acme", "rival"]
    # Who waits longest comes first: acme's evaluation did not come about.
    asked.clear()
    evaluate()
    assert asked == ["acme", "rival"]
    assert not Alert.objects.exists()


class TestWhatGoesOut:
    @pytest.fixture
    def waiting(self, acme, by, alice):
        channel = add_channel(
            actor=by(alice), team=acme, kind="webhook", name="ops", owner=None, hears=RouteWords(),
            typed={"url": "https://hooks.example/x", "secret": "x" * 20},
        )  # fmt: skip
        Delivery.objects.create(channel=channel, state="queued", next_attempt_at=NOON, created_at=NOON)
        return channel

    def parts(self, minutes):
        return [trouble.part for trouble in own_troubles(NOON + timedelta(minutes=minutes))]

    def test_messages_that_nobody_sends_are_trouble_after_five_minutes(self, waiting):
        assert (self.parts(4), self.parts(6)) == ([], ["sending"])

    @pytest.mark.parametrize(
        "held",
        [
            {"hold_until": NOON + timedelta(hours=1)},
            {"claimed_until": NOON + timedelta(minutes=5)},
            {"broken": "gone"},
            {"enabled": False},
        ],
    )
    def test_a_channel_that_has_its_own_reason_is_none(self, waiting, held):
        Channel.objects.update(**held)
        assert self.parts(6) == []

    def test_operations_that_nobody_drives_are_trouble_too(self, acme, account, make_instance):
        Operation.objects.create(
            team=acme, account=account, instance=make_instance(), kind="stop", token="t", next_at=NOON
        )
        assert (self.parts(4), self.parts(6)) == ([], ["operations"])
