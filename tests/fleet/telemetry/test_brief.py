"""Maps and lists read plain rows: what they say of a machine must be what its own page says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.inventory.models import GPU, Instance
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import Agent, GpuLatest, HostLatest

pytestmark = pytest.mark.django_db
NOON = datetime(2031, 3, 14, 12, tzinfo=UTC)
GIB = 1 << 30
READINGS: tuple[dict[str, Any], ...] = (
    {"utilization_percent": 97.0, "sm_activity": 0.8, "memory_used_bytes": 60 * GIB},
    {"utilization_percent": 0.0, "memory_used_bytes": 60 * GIB, "idle_since": NOON - timedelta(hours=3)},
    {"utilization_percent": 0.0, "memory_used_bytes": 0, "process_count": 0},
    {"utilization_percent": 30.0, "memory_used_bytes": GIB},
    {"utilization_percent": 100.0, "power_watts": 70.0, "power_limit_watts": 700.0},
    {"utilization_percent": 50.0, "lost": True},
    {"utilization_percent": 50.0, "sampled_at": NOON - timedelta(minutes=5)},
)


@pytest.fixture
def machine(make_instance):
    """One of everything: states, a GPU that nobody reported, a card cut in two, a removed GPU, a slow agent."""
    found = make_instance(gpus=len(READINGS))
    found.gpu_count = len(READINGS) + 3
    found.save()
    for gpu, reading in zip(found.gpus.order_by("index"), READINGS, strict=True):
        told = {"sampled_at": NOON - timedelta(seconds=5.25), "memory_total_bytes": 80 * GIB, **reading}
        GpuLatest.objects.create(gpu=gpu, received_at=NOON, **told)
    card = GPU.objects.create(instance=found, uuid="card", index=7)
    for number in range(2):
        GPU.objects.create(instance=found, uuid=f"MIG-{number}", index=7, mig_parent_uuid=card.uuid)
    GPU.objects.create(instance=found, uuid="gone", index=0, removed_at=NOON)
    HostLatest.objects.create(
        instance=found, sampled_at=NOON, received_at=NOON, cpu_iowait_percent=44.0, pressure_io_percent=1.0
    )
    Agent.objects.create(instance=found, token_hash="t", prefix="rra_", interval_seconds=20, report_seconds=60)
    return found


def told(machines: list[Instance], *, brief: bool) -> list[Any]:
    return [
        (
            view.state,
            view.scrape_seconds,
            [
                (
                    one.gpu.pk,
                    one.gpu.index,
                    one.gpu.name,
                    one.verdict,
                    one.latest and (one.latest.sampled_at, one.latest.idle_since, one.latest.memory_total_bytes),
                )
                for one in view.gpus
            ],
        )
        for view in machines_now(machines, now=NOON, brief=brief)
    ]


def test_lists_judge_as_the_page_of_one_machine_does(machine, make_instance):
    other = make_instance(name="silent", gpus=1)
    machines = [machine, other]
    assert told(machines, brief=True) == told(machines, brief=False)
    states = {verdict.state.value for _pk, _index, _name, verdict, _latest in told(machines, brief=True)[0][2]}
    assert states == {"working", "held", "free", "starved", "stalled", "unknown"}


def test_a_list_takes_as_many_queries_for_two_machines_as_for_one(
    machine, make_instance, django_assert_max_num_queries
):
    machines = [machine, make_instance(name="other", gpus=8)]
    with django_assert_max_num_queries(4):
        machines_now(machines, now=NOON, brief=True)
