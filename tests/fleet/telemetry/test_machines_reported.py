"""Inventory, environment, events and heartbeats: what a machine says beside its samples."""

from __future__ import annotations

import time

import pytest
from asgiref.sync import sync_to_async

from fleet.inventory.models import GPU, EnvironmentReport, Instance
from fleet.telemetry.models import Agent, MachineEvent
from tests.fleet.telemetry.conftest import batch

pytestmark = pytest.mark.django_db(transaction=True)

H100 = {"uuid": "GPU-a", "index": 0, "name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 85520809984}


async def test_the_inventory_is_what_the_machine_has_now(machine, reporter):
    second = {"uuid": "GPU-b", "index": 1, "name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "00000000:19:00.0"}
    await reporter.samples(inventory=[H100, second])
    assert await machine.gpus.filter(removed_at=None).acount() == 2
    await reporter.samples(inventory=[second])
    removed = await machine.gpus.aget(uuid="GPU-a")
    assert removed.removed_at is not None
    await reporter.samples(inventory=[H100, second])
    back = await machine.gpus.aget(uuid="GPU-a")
    assert (back.pk, back.removed_at, back.memory_total_bytes) == (removed.pk, None, 85520809984)


async def test_a_mig_instance_is_a_gpu_of_its_own(machine, reporter):
    part = {
        "uuid": "MIG-1",
        "index": 0,
        "name": "NVIDIA H100 MIG 1g.10gb",
        "mig_parent": "GPU-a",
        "mig_profile": "1g.10gb",
    }
    await reporter.samples({"at": time.time(), "gpus": [{"uuid": "MIG-1", "sm_activity": 0.5}]}, inventory=[H100, part])
    gpu = await GPU.objects.select_related("latest").aget(uuid="MIG-1")
    assert (gpu.mig_parent_uuid, gpu.mig_profile, gpu.latest.sm_activity) == ("GPU-a", "1g.10gb", 0.5)


async def test_facts_that_nobody_knew_are_filled_and_others_are_left(make_instance, reporter_for):
    blank = await sync_to_async(make_instance)(name="blank")
    await Instance.objects.filter(pk=blank.pk).aupdate(gpu_count=None, gpu_model="", gpu_memory_mib=None)
    typed = await sync_to_async(make_instance)(
        name="typed", gpu_model="A100", gpu_memory_mib=40_960, vcpus=8, ram_mib=1
    )
    environment = {"cpu_count": 208, "memory_total_bytes": 1 << 40}
    for machine in (blank, typed):
        reporter = await reporter_for(machine)
        part = {"uuid": "MIG-1", "mig_parent": "GPU-a"}
        await reporter.samples(inventory=[H100, {**H100, "uuid": "GPU-b"}, part], environment=environment)
        await machine.arefresh_from_db()
    assert (blank.gpu_count, blank.gpu_model, blank.gpu_memory_mib) == (2, "H100 SXM", 81559)
    assert (blank.vcpus, blank.ram_mib) == (208, 1 << 20)
    assert (typed.gpu_model, typed.gpu_memory_mib, typed.vcpus, typed.ram_mib) == ("A100", 40_960, 8, 1)


async def test_an_environment_is_a_row_for_each_change(machine, reporter):
    for frameworks in ({"torch": "2.9.1+cu128"}, {"torch": "2.9.1+cu128"}, {"torch": "2.10.0"}):
        await reporter.samples(environment={"os": "Debian 12", "frameworks": frameworks})
    reports = [report async for report in EnvironmentReport.objects.order_by("reported_at")]
    assert [report.data["frameworks"]["torch"] for report in reports] == ["2.9.1+cu128", "2.10.0"]
    assert reports[0].data["os"] == "Debian 12"


async def test_an_event_is_a_row_and_a_second_equal_xid_is_a_second_one(machine, reporter):
    now = time.time()
    events = [{"at": now - age, "kind": "xid", "gpu": "GPU-a", "code": 79, "detail": "off the bus"} for age in (9, 5)]
    events.append({"at": now, "kind": "driver_hung"})
    for _ in range(2):
        assert (await reporter.post("samples", {**batch(), "events": events})).json()["accepted"]["events"] == 3
    rows = [event async for event in MachineEvent.objects.order_by("at")]
    assert [(event.kind, event.code) for event in rows] == [("xid", 79), ("xid", 79), ("driver_hung", None)]
    assert (rows[0].gpu_id, rows[2].gpu_id) == ((await machine.gpus.aget()).pk, None)


async def test_a_heartbeat_says_how_the_agent_is(reporter):
    now = time.time()
    nvml = {"state": "hung", "detail": "nvmlDeviceGetPowerUsage", "since": now - 40}
    beat = {"v": 1, "sent_at": now, "agent_version": "0.2.0", "boot_id": "b2", "nvml": nvml, "queued_batches": 7}
    more = {"oldest_queued_at": now - 70, "dropped_batches": 3, "cpu_percent": 0.4, "memory_bytes": 30 << 20}
    answer = await reporter.post("heartbeat", {**beat, **more})
    assert (answer.status_code, answer.json()["config"]["interval_seconds"]) == (200, 5)
    agent = await Agent.objects.aget()
    assert (agent.nvml_state, agent.nvml_detail, agent.queued_batches) == ("hung", "nvmlDeviceGetPowerUsage", 7)
    assert (agent.version, agent.lost_batches, agent.cpu_percent, agent.memory_bytes) == ("0.2.0", 3, 0.4, 30 << 20)
    assert agent.heartbeat_at is not None
    assert agent.batch_at is None


async def test_a_machine_cannot_have_more_gpus_than_any_has(reporter, monkeypatch):
    from fleet.telemetry.ingest import registry

    monkeypatch.setattr(registry, "MAX_GPUS_EVER", 3)
    answer = await reporter.samples({"at": time.time(), "gpus": [{"uuid": f"GPU-{n}"} for n in range(3)]})
    assert (answer.status_code, answer.json()["field"]) == (422, "uuid")


async def test_an_agent_writes_to_its_own_machine_only(make_instance, reporter_for, reporter, machine):
    """Whatever ids and UUIDs it claims."""
    other = await sync_to_async(make_instance)(name="other", gpus=1)
    await other.gpus.aupdate(uuid="GPU-other")
    claimed = {"instance_id": other.pk, "team": "rival"}
    await reporter.post(
        "samples", {**batch({"at": time.time(), "gpus": [{"uuid": "GPU-other", "power_watts": 9.0}]}), **claimed}
    )
    assert not await GPU.objects.filter(instance=other, latest__isnull=False).aexists()
    assert await GPU.objects.filter(instance=machine, uuid="GPU-other", latest__power_watts=9.0).aexists()


async def test_a_removed_gpu_that_reports_again_is_back(machine, reporter):
    await reporter.samples(inventory=[{"uuid": "GPU-b", "index": 1}])
    waited = {"at": time.time() - 60, "gpus": [{"uuid": "GPU-a", "power_watts": 9.0}]}
    lost = {"at": time.time() + 1, "gpus": [{"uuid": "GPU-a", "state": "lost"}]}
    for sample in (waited, lost):
        await reporter.samples(sample)
        assert (await machine.gpus.aget(uuid="GPU-a")).removed_at is not None
    await reporter.samples({"at": time.time() + 2, "gpus": [{"uuid": "GPU-a", "power_watts": 9.0}]})
    assert (await machine.gpus.aget(uuid="GPU-a")).removed_at is None


async def test_two_copies_with_one_token_are_a_conflict_and_a_reboot_is_none(reporter):
    for boot_id, conflict in (("b1", ""), ("b1", ""), ("b2", ""), ("b1", "shared")):
        await reporter.post("heartbeat", {"v": 1, "sent_at": time.time(), "boot_id": boot_id})
        assert (await Agent.objects.aget()).match_conflict == conflict
