"""What the rules are given of real rows."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.alerts.load import load_snapshot
from fleet.alerts.models import Alert
from fleet.alerts.retention import prune_alerts
from fleet.alerts.rules.fullness import hours_left
from fleet.alerts.snapshot import Filesystem, Machine
from fleet.inventory.models import GPU, Instance, Observation
from fleet.states import GpuState
from fleet.telemetry.models import Agent, GpuLatest, HostLatest, MachineEvent
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import HostRollupFiveMinutes
from tests.fleet.alerts.conftest import NOON, minutes


@pytest.fixture
def instance(fleet, cloud) -> Instance:
    made: Instance = fleet.add(cloud, "node-1")
    fleet.speak()
    return made


@pytest.fixture
def seen(acme, instance):
    """seen() is the one machine as rules see it at noon."""

    def load() -> Machine:
        (machine,) = load_snapshot(team=acme, now=NOON, watching_since=NOON).machines
        return machine

    return load


def test_readings_health_and_states(seen, instance):
    health = {"ecc_uncorrected": 2, "remapped_rows_pending": True, "remapped_rows_failed": False}
    GpuLatest.objects.update(health=health, sm_activity=0.8, throttle_reasons=0x24)
    gpu = seen().gpus[0]
    assert (gpu.fresh, gpu.state, gpu.throttle_reasons) == (True, GpuState.WORKING, 0x24)
    assert (gpu.ecc_uncorrected, gpu.remap_pending, gpu.remap_failed) == (2, True, False)


def test_an_old_reading_is_not_fresh_and_a_state_of_it_is_unknown(seen, instance):
    GpuLatest.objects.update(sampled_at=minutes(-2))
    assert [(gpu.fresh, gpu.state) for gpu in seen().gpus] == [(False, GpuState.UNKNOWN)] * 2


def test_an_agent_that_was_told_to_report_seldom_is_fresh_for_longer(seen, instance):
    GpuLatest.objects.update(sampled_at=minutes(-2))
    Agent.objects.update(interval_seconds=60, report_seconds=120)
    assert all(gpu.fresh for gpu in seen().gpus)


def test_a_card_in_slices_is_judged_by_its_slices(seen, instance):
    card = GPU.objects.order_by("pk")[0]
    GPU.objects.create(instance=instance, uuid="MIG-1", index=0, mig_parent_uuid=card.uuid)
    assert [(gpu.is_parent, gpu.is_part) for gpu in seen().gpus] == [(True, False), (False, True), (False, False)]


def test_gpus_that_were_removed_machines_that_are_gone_and_agents_that_were_revoked_are_not_there(seen, instance, acme):
    GPU.objects.filter(index=1).update(removed_at=NOON)
    Agent.objects.update(revoked_at=NOON)
    assert (len(seen().gpus), seen().agent) == (1, None)
    Instance.objects.update(gone_at=NOON)
    assert load_snapshot(team=acme, now=NOON, watching_since=NOON).machines == ()


def test_file_systems_come_from_the_list_and_the_root_from_its_own_figures(seen, instance):
    listed = [
        {"mount": "/data", "used_bytes": 5, "total_bytes": 10},
        {"mount": "/odd", "used_bytes": None, "total_bytes": 10},
    ]
    HostLatest.objects.update(detail={"filesystems": listed}, filesystem_used_bytes=1, filesystem_total_bytes=10)
    host = seen().host
    assert host is not None
    assert host.filesystems == (Filesystem("/", 1, 10), Filesystem("/data", 5, 10))


def fill(instance, *, per_hour: float, hours: int = 6) -> None:
    ensure_partitions(now=NOON, since=NOON - timedelta(days=1))
    HostRollupFiveMinutes.objects.bulk_create(
        HostRollupFiveMinutes(
            instance=instance, bucket_at=NOON - timedelta(minutes=5 * step), samples=60, coverage=1,
            filesystem_used_bytes_avg=700e9 - per_hour * step / 12,
        )
        for step in range(1, 12 * hours)
    )  # fmt: skip


def test_when_a_disk_will_be_full(seen, instance):
    HostLatest.objects.update(filesystem_used_bytes=700_000_000_000, filesystem_total_bytes=1_000_000_000_000)
    fill(instance, per_hour=30e9)
    host = seen().host
    assert host is not None
    assert hours_left(host.filesystems[0], host.fill_bytes_per_second) == pytest.approx(10, rel=0.01)


def test_half_an_hour_is_no_trend_and_an_empty_disk_needs_none(seen, instance):
    HostLatest.objects.update(filesystem_used_bytes=700_000_000_000, filesystem_total_bytes=1_000_000_000_000)
    fill(instance, per_hour=30e9, hours=1)
    host = seen().host
    assert host is not None
    assert host.fill_bytes_per_second is None
    HostLatest.objects.update(filesystem_used_bytes=100_000_000_000)
    host = seen().host
    assert host is not None
    assert host.fill_bytes_per_second is None


def test_equal_xids_are_counted_and_old_ones_left_out(seen, instance):
    card = GPU.objects.order_by("pk")[0]
    for ago, code in ((5, 31), (9, 31), (7, 79), (3_000, 31)):
        MachineEvent.objects.create(instance=instance, gpu=card, at=minutes(-ago), kind="xid", code=code)
    MachineEvent.objects.create(instance=instance, at=minutes(-1), kind="agent_started")
    found = sorted((one.code, one.count, one.last_at) for one in seen().happened)
    assert found == [(31, 2, minutes(-5)), (79, 1, minutes(-7))]


def observe(instance, ago_hours: float, price: int, **fields) -> None:
    values = {"state": "running", "billing": "full", "currency": "USD", "rule_version": 1, **fields}
    Observation.objects.create(
        instance=instance, seen_at=NOON - timedelta(hours=ago_hours), price_per_hour=Decimal(price), **values
    )


def test_a_price_is_compared_with_the_one_before_it_however_old_that_is(seen, instance):
    observe(instance, 24 * 60, 10)
    observe(instance, 2, 12)
    change = seen().price_change
    assert (change.at, change.before, change.after) == (NOON - timedelta(hours=2), 10, 12)


def test_what_a_stopped_machine_costs_and_another_currency_are_no_change_of_price(seen, instance):
    observe(instance, 5, 10)
    observe(instance, 4, 1, billing="storage", state="stopped")
    observe(instance, 3, 10)
    observe(instance, 2, 72, currency="CNY")
    assert seen().price_change is None


def test_closed_alerts_are_kept_for_thirteen_months(acme):
    old = Alert.objects.create(team=acme, cause="a", subject="b", severity="note", closed_at=NOON - timedelta(days=400))
    Alert.objects.create(team=acme, cause="a", subject="b", severity="note", closed_at=NOON - timedelta(days=300))
    Alert.objects.create(team=acme, cause="a", subject="b", severity="note", opened_at=NOON - timedelta(days=900))
    assert prune_alerts(now=NOON) == 1
    assert not Alert.objects.filter(pk=old.pk).exists()
