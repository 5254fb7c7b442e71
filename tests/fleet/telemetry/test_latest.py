"""What machines do now: every GPU that is paid for has a tile, and nothing that was not read counts as idle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.inventory.models import GPU, Instance
from fleet.providers.base import InstanceState
from fleet.states import GpuState
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import GpuLatest, HostLatest
from tests.fleet.telemetry.conftest import enrolled

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def latest(gpu: GPU, *, age: float = 5, **values) -> None:
    moment = NOW - timedelta(seconds=age)
    readings = {"utilization_percent": 90.0, "memory_used_bytes": 1 << 34, **values}
    GpuLatest.objects.create(gpu=gpu, sampled_at=moment, received_at=moment, **readings)


def states(machine: Instance) -> list[GpuState]:
    (now,) = machines_now([machine], now=NOW)
    return [gpu.verdict.state for gpu in now.gpus]


def test_gpus_come_by_index_with_their_own_state(make_instance):
    machine = make_instance(gpus=3)
    first, second, third = machine.gpus.order_by("index")
    latest(first)
    latest(second, utilization_percent=0.0)
    latest(third, age=40)
    assert states(machine) == [GpuState.WORKING, GpuState.HELD_IDLE, GpuState.UNKNOWN]


def test_a_gpu_that_nobody_reports_is_unknown_and_never_left_out(make_instance):
    machine = make_instance(gpus=1, state=InstanceState.RUNNING)
    Instance.objects.filter(pk=machine.pk).update(gpu_count=4)
    machine.refresh_from_db()
    latest(machine.gpus.get())
    assert states(machine) == [GpuState.WORKING] + [GpuState.UNKNOWN] * 3
    (now,) = machines_now([machine], now=NOW)
    assert [gpu.gpu.index for gpu in now.gpus] == [0, 1, 2, 3]
    assert all(gpu.gpu.pk is None for gpu in now.gpus[1:])
    assert now.state == GpuState.UNKNOWN


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (InstanceState.STOPPED, GpuState.STOPPED),
        (InstanceState.TERMINATED, GpuState.STOPPED),
        (InstanceState.RUNNING, GpuState.UNKNOWN),
        (InstanceState.UNKNOWN, GpuState.UNKNOWN),
        (InstanceState.STARTING, GpuState.UNKNOWN),
    ],
)
def test_a_machine_without_an_agent_shows_what_its_provider_says(make_instance, state, shown):
    machine = make_instance(gpus=0, state=state)
    Instance.objects.filter(pk=machine.pk).update(gpu_count=2)
    machine.refresh_from_db()
    assert states(machine) == [shown, shown]


def test_a_stopped_machine_is_stopped_whatever_it_last_said(make_instance):
    machine = make_instance(gpus=1, state=InstanceState.STOPPED)
    latest(machine.gpus.get())
    assert states(machine) == [GpuState.STOPPED]


def test_a_cpu_machine_has_no_tiles(make_instance):
    machine = make_instance(gpus=0)
    (now,) = machines_now([machine], now=NOW)
    assert (now.gpus, now.state) == ([], GpuState.UNKNOWN)
    stopped = make_instance(name="off", state=InstanceState.STOPPED)
    assert machines_now([stopped], now=NOW)[0].state == GpuState.STOPPED


def test_a_removed_gpu_is_gone(make_instance):
    machine = make_instance(gpus=2)
    machine.gpus.filter(index=1).update(removed_at=NOW)
    Instance.objects.filter(pk=machine.pk).update(gpu_count=1)
    machine.refresh_from_db()
    assert len(states(machine)) == 1


def test_mig_instances_stand_for_their_card(make_instance):
    machine = make_instance(gpus=1)
    card = machine.gpus.get()
    for number in range(2):
        part = GPU.objects.create(instance=machine, uuid=f"MIG-{number}", index=0, mig_parent_uuid=card.uuid)
        latest(part)
    assert states(machine) == [GpuState.WORKING] * 2


def test_waiting_that_the_host_reported_long_ago_explains_nothing(make_instance):
    machine = make_instance(gpus=1)
    latest(machine.gpus.get(), utilization_percent=30.0)
    host = HostLatest.objects.create(
        instance=machine, sampled_at=NOW - timedelta(seconds=5), received_at=NOW, cpu_iowait_percent=40.0
    )
    assert states(machine) == [GpuState.STARVED]
    host.sampled_at = NOW - timedelta(hours=1)
    host.save()
    assert states(machine) == [GpuState.WORKING]


def test_five_queries_for_any_number_of_machines(make_instance, django_assert_num_queries):
    for number in range(5):
        machine = make_instance(name=f"m{number}", gpus=2)
        enrolled(machine)
        for gpu in machine.gpus.all():
            latest(gpu)
    with django_assert_num_queries(5):
        found = machines_now(Instance.objects.order_by("name"), now=NOW)
    assert [machine.instance.name for machine in found] == [f"m{number}" for number in range(5)]
    assert all(machine.agent for machine in found)
