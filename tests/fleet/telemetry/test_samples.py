"""What a batch leaves in the database."""

from __future__ import annotations

import time

import pytest
from asgiref.sync import sync_to_async

from fleet.inventory.models import GPU
from fleet.telemetry.models import Agent, GpuLatest, GpuSample, HostLatest, HostSample

pytestmark = pytest.mark.django_db(transaction=True)


async def test_every_reading_is_stored_before_the_answer(make_instance, reporter_for):
    machine = await sync_to_async(make_instance)(gpus=2)
    reporter = await reporter_for(machine)
    now = time.time()
    uuids = [uuid async for uuid in GPU.objects.order_by("index").values_list("uuid", flat=True)]
    gpus = [{"uuid": uuid, "utilization_percent": 90.0, "memory_used_bytes": 5, "sm_clock_mhz": 1410} for uuid in uuids]
    host = {"cpu_percent": 12.5, "disks": [{"device": "nvme0n1", "read_iops": 3.5}]}
    response = await reporter.samples(*[{"at": now - age, "host": host, "gpus": gpus} for age in (10, 5)])
    assert response.status_code == 200
    assert response.json()["accepted"] == {"gpu": 4, "host": 2, "events": 0}
    assert response.json()["dropped"] == {}
    assert await GpuSample.objects.acount() == 4
    stored = await HostSample.objects.order_by("sampled_at").afirst()
    assert stored is not None
    assert (stored.cpu_percent, stored.devices) == (12.5, {"disks": [{"device": "nvme0n1", "read_iops": 3.5}]})
    latest = await GpuLatest.objects.aget(gpu__uuid=uuids[0])
    assert (latest.utilization_percent, latest.sm_clock_mhz, latest.power_watts) == (90.0, 1410, None)
    assert latest.sampled_at.timestamp() == pytest.approx(now - 5, abs=1e-3)
    assert (await HostLatest.objects.aget()).detail["disks"][0]["device"] == "nvme0n1"
    agent = await Agent.objects.aget()
    assert (agent.version, agent.boot_id) == ("0.1.0", "b1")
    assert agent.batch_at is not None


async def test_sending_a_batch_twice_stores_it_once(reporter):
    sample = {"at": time.time() - 5, "host": {"load1": 1.0}, "gpus": [{"uuid": "GPU-a", "power_watts": 300.0}]}
    for _ in range(2):
        assert (await reporter.samples(sample)).status_code == 200
    assert (await GpuSample.objects.acount(), await HostSample.objects.acount()) == (1, 1)


async def test_a_sample_keeps_the_interval_that_it_was_taken_at(reporter):
    now = time.time()
    told = [60, 301, None]
    samples = [
        {
            "at": now - age,
            "host": {"load1": 1.0},
            "gpus": [{"uuid": "GPU-a", "power_watts": 1.0}],
            "interval_seconds": it,
        }
        for age, it in zip((30, 20, 10), told, strict=True)
    ]
    response = await reporter.samples(*samples)
    assert response.json()["accepted"]["gpu"] == 3
    assert response.json()["dropped"] == {"interval_seconds": 1}
    for model in (GpuSample, HostSample):
        stored = model.objects.order_by("sampled_at").values_list("interval_seconds", flat=True)
        assert [seconds async for seconds in stored] == [60, None, None]


async def test_latest_only_moves_forward(reporter):
    now = time.time()
    await reporter.samples({"at": now - 1, "gpus": [{"uuid": "GPU-a", "power_watts": 1.0}], "host": {"load1": 1.0}})
    await reporter.samples({"at": now - 60, "gpus": [{"uuid": "GPU-a", "power_watts": 2.0}], "host": {"load1": 2.0}})
    assert (await GpuLatest.objects.aget()).power_watts == 1.0
    assert (await HostLatest.objects.aget()).load1 == 1.0
    assert await GpuSample.objects.acount() == 2


async def test_a_gpu_that_no_inventory_named_yet_is_taken_in(machine, reporter):
    response = await reporter.samples({"at": time.time(), "gpus": [{"uuid": "GPU-new", "power_watts": 5.0}]})
    assert response.json()["accepted"]["gpu"] == 1
    gpu = await GPU.objects.aget(instance=machine, uuid="GPU-new")
    assert (await GpuLatest.objects.aget()).gpu_id == gpu.pk


async def test_one_uuid_on_two_machines_is_two_gpus(make_instance, reporter_for):
    machines = [await sync_to_async(make_instance)(name=name) for name in ("original", "clone")]
    for machine, watts in zip(machines, (100.0, 200.0), strict=True):
        reporter = await reporter_for(machine)
        await reporter.samples({"at": time.time(), "gpus": [{"uuid": "GPU-same", "power_watts": watts}]})
    for machine, watts in zip(machines, (100.0, 200.0), strict=True):
        latest = await GpuLatest.objects.aget(gpu__instance=machine)
        assert latest.power_watts == watts
