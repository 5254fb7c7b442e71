"""How often a rule would have fired: counted in history, and said to be unknown where there is none."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import override_settings

from fleet.alerts.preview import preview_rule, statistic_for
from fleet.alerts.rules import all_rules
from fleet.inventory.models import GPU, Instance, Observation
from fleet.telemetry.models import Agent, HostLatest, MachineEvent
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import GpuRollupHour, HostRollupHour
from tests.fleet.alerts.conftest import NOON

STATES = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")


def hours_ago(count: float):
    return NOON - timedelta(hours=count)


@pytest.fixture
def machine(make_instance) -> Instance:
    ensure_partitions(now=NOON, since=NOON - timedelta(days=32))
    made: Instance = make_instance(name="train-01", gpus=2, first_seen_at=NOON - timedelta(days=10))
    GPU.objects.update(first_seen_at=NOON - timedelta(days=10), memory_total_bytes=100)
    HostLatest.objects.create(
        instance=made, sampled_at=NOON, received_at=NOON, memory_total_bytes=100, filesystem_total_bytes=100
    )
    return made


@pytest.fixture
def roll(machine):
    """roll(5, unknown=3600) makes the hour five hours ago, of one GPU or of all."""

    def make(ago: int, *, gpus: slice = slice(None), values=None, **seconds: float) -> None:
        spent = {f"{state}_seconds": seconds.get(state, 0.0) for state in STATES}
        GpuRollupHour.objects.bulk_create(
            GpuRollupHour(gpu=gpu, bucket_at=hours_ago(ago), samples=360, coverage=1, **spent, **(values or {}))
            for gpu in list(machine.gpus.order_by("index"))[gpus]
        )

    return make


def counted(team, kind, **how):
    preview = preview_rule(team=team, kind=kind, now=NOON, **how)
    return preview.times, preview.machines


def test_hours_that_follow_each_other_are_one_firing(acme, roll):
    for ago in (20, 19, 18, 5):
        roll(ago, stalled=900.0)
    assert counted(acme, "stalled") == (2, 1)
    assert counted(acme, "stalled", for_seconds=1_200) == (0, 0)


def test_a_machine_is_silent_when_all_of_its_gpus_are(acme, roll):
    roll(20, unknown=3_600.0)
    roll(5, gpus=slice(1), unknown=3_600.0)
    roll(5, gpus=slice(1, 2), working=3_600.0)
    assert counted(acme, "agent_silent") == (1, 1)


@pytest.mark.parametrize(
    ("values", "times"),
    [
        ({"temperature_celsius_p95": 90.0, "temperature_celsius_max": 95.0}, 1),
        ({"temperature_celsius_p95": 80.0, "temperature_celsius_max": 95.0}, 0),
        ({"throttle_reasons": 0x40}, 1),
        ({"throttle_reasons": 0x4}, 0),
    ],
)
def test_heat(acme, roll, values, times):
    roll(5, values=values)
    assert counted(acme, "thermal")[0] == times


def test_other_thresholds_give_other_counts(acme, roll):
    roll(5, values={"temperature_celsius_p95": 84.0})
    assert counted(acme, "thermal")[0] == 0
    assert counted(acme, "thermal", thresholds={"celsius": 80})[0] == 1


def test_memory_and_disks(acme, machine, roll):
    roll(5, values={"memory_used_bytes_p95": 99.0})
    HostRollupHour.objects.create(
        instance=machine, bucket_at=hours_ago(5), samples=360, coverage=1,
        memory_used_bytes_max=97.0, filesystem_used_bytes_max=91.0,
    )  # fmt: skip
    assert counted(acme, "gpu_memory") == (1, 1)
    assert counted(acme, "host_memory") == (1, 1)
    assert counted(acme, "disk") == (1, 1)
    assert counted(acme, "disk", thresholds={"percent": 95}) == (0, 0)


def test_events_within_the_quiet_time_are_one(acme, machine):
    for ago in (10.0, 9.8, 2.0):
        MachineEvent.objects.create(instance=machine, at=hours_ago(ago), kind="xid", code=31)
    assert counted(acme, "xid") == (2, 1)
    assert counted(acme, "xid", thresholds={"quiet_minutes": 5}) == (3, 1)


def test_changes_of_price(acme, machine):
    for ago, price in ((30, 10), (20, 10), (10, 12), (5, 12)):
        Observation.objects.create(
            instance=machine, seen_at=hours_ago(ago), state="running", billing="full", price_per_hour=Decimal(price), currency="USD", rule_version=1,
        )  # fmt: skip
    assert counted(acme, "price_changed") == (1, 1)
    assert counted(acme, "price_changed", thresholds={"percent": 25}) == (0, 0)


def test_it_says_how_far_history_reaches(acme, roll):
    roll(5, stalled=900.0)
    assert preview_rule(team=acme, kind="stalled", now=NOON).since == hours_ago(5)
    roll(31 * 24)
    assert preview_rule(team=acme, kind="stalled", now=NOON).since == hours_ago(5)
    roll(30 * 24)
    assert preview_rule(team=acme, kind="stalled", now=NOON).since == NOON - timedelta(days=30)


def test_machines_without_an_agent_never_reported_so_nobody_can_say(acme, machine):
    for kind in ("stalled", "disk", "xid", "price_changed"):
        preview = preview_rule(team=acme, kind=kind, now=NOON)
        assert (preview.times, preview.why) == (None, "no_history"), kind


def test_of_machines_with_an_agent_no_event_is_none(acme, machine):
    Agent.objects.create(instance=machine, token_hash="h", prefix="p", enrolled_at=hours_ago(50))
    assert counted(acme, "xid") == (0, 0)
    assert preview_rule(team=acme, kind="xid", now=NOON).since == hours_ago(50)


@pytest.mark.parametrize("kind", ["poll_failing", "clock_skew", "agent_outdated", "lease_ending", "own_trouble"])
def test_of_what_nothing_is_kept_nobody_can_say(acme, machine, kind):
    preview = preview_rule(team=acme, kind=kind, now=NOON)
    assert (preview.times, preview.why) == (None, "no_history")


def test_readings_that_lie_elsewhere_are_not_counted_as_none(acme, roll):
    with override_settings(TELEMETRY_STORE="prometheus"):
        preview = preview_rule(team=acme, kind="stalled", now=NOON)
    assert (preview.times, preview.why) == (None, "other_store")


def test_another_teams_history_is_not_looked_at(rival, roll):
    roll(5, stalled=900.0)
    assert preview_rule(team=rival, kind="stalled", now=NOON).why == "no_history"


def test_every_rule_can_be_previewed_or_says_why_not(acme, machine):
    for rule in all_rules():
        preview = preview_rule(team=acme, kind=rule.kind, now=NOON)
        assert (preview.times is None) == bool(preview.why), rule.kind


def test_a_preview_that_takes_too_long_says_so(acme, roll, monkeypatch):
    roll(5)
    monkeypatch.setattr(
        "fleet.alerts.preview._hits", lambda *_: "SELECT 1::bigint AS instance_id, now() AS at, pg_sleep(1)"
    )
    monkeypatch.setattr("fleet.alerts.preview.TIMEOUT_MS", 20)
    preview = preview_rule(team=acme, kind="stalled", now=NOON)
    assert (preview.times, preview.why) == (None, "too_long")


def test_the_longer_it_has_to_last_the_steadier_the_statistic():
    assert [statistic_for(seconds) for seconds in (0, 300, 3_600)] == ["max", "p95", "avg"]
