"""A value that cannot be true is dropped and counted; what stands beside it is kept."""

from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.telemetry.models import Agent, GpuReading, GpuSample, HostReading, HostSample
from fleet.telemetry.readings import GPU_COLUMNS, HOST_COLUMNS
from fleet.telemetry.sanitise import Reader
from fleet.telemetry.wire import Batch
from tests.fleet.telemetry.conftest import batch

READER = Reader(Batch)
# What drivers and exporters write where they have no value: 2^32-1, DCGM's blanks for integers and floats, NaN, infinities.
SENTINELS = [4294967295, 140737488355328.0, 9223372036854775792, 9223372036854775794, -1, math.nan, math.inf, -math.inf]

# One degree below zero; 4 GiB less a byte, held or moved in a second.
CAN_BE_TRUE = {(column, -1) for column in GPU_COLUMNS if column.endswith("celsius")} | {
    (column, 4294967295) for column in GPU_COLUMNS if column.endswith(("_bytes", "_per_second"))
}


def gpu_after(**values):
    sample = {"at": 1.0, "gpus": [{"uuid": "GPU-a", **values}]}
    decoded = READER.read(json.dumps({"v": 1, "sent_at": 1.0, "samples": [sample]}).encode())
    (read,) = decoded.value.samples or []
    (gpu,) = read.gpus or []
    return gpu, decoded.dropped


def test_the_wire_names_every_column():
    assert tuple(field.name for field in GpuReading._meta.get_fields()) == GPU_COLUMNS
    assert tuple(field.name for field in HostReading._meta.get_fields()) == HOST_COLUMNS


IMPOSSIBLE = [(column, value) for column in GPU_COLUMNS for value in SENTINELS if (column, value) not in CAN_BE_TRUE]


@pytest.mark.parametrize(("column", "sentinel"), IMPOSSIBLE)
def test_no_sentinel_passes_for_a_value(column, sentinel):
    gpu, dropped = gpu_after(**{column: sentinel}, encoder_percent=5.0)
    assert getattr(gpu, column) is None
    assert dropped == {column: 1}
    assert gpu.encoder_percent == 5.0


def test_whole_numbers_may_come_as_floats():
    gpu, dropped = gpu_after(memory_used_bytes=1024.0, sm_clock_mhz=1410.4)
    assert (gpu.memory_used_bytes, gpu.sm_clock_mhz, dropped) == (1024, 1410, {})


def test_null_is_absent_and_zero_is_zero():
    gpu, dropped = gpu_after(power_watts=None, utilization_percent=0)
    assert (gpu.power_watts, gpu.utilization_percent, dropped) == (None, 0.0, {})


def test_garbage_processes_lose_their_pid_and_nothing_else_is_lost():
    gpu, dropped = gpu_after(power_watts=1.0, processes=[{"pid": 4294967295, "memory_bytes": 1}, {"pid": 7}])
    assert [process.pid for process in gpu.processes] == [None, 7]
    assert (dropped, gpu.power_watts) == ({"pid": 1}, 1.0)


@given(st.dictionaries(st.sampled_from(GPU_COLUMNS), st.integers() | st.floats(), max_size=8))
def test_any_numbers_at_all_leave_a_sample_within_bounds(values):
    gpu, dropped = gpu_after(**values)
    for column, value in values.items():
        kept = getattr(gpu, column)
        assert (kept is None) == (column in dropped)
        assert kept is None or math.isclose(kept, value, abs_tol=0.5)


@pytest.mark.django_db(transaction=True)
async def test_dropped_values_are_counted_for_the_agent_and_said_to_it(reporter):
    for at in (2, 1):
        host = {"cpu_percent": 250.0, "load1": 2.0, "disks": [{"device": "sda", "read_iops": -5, "write_iops": 1.0}]}
        gpu = {"uuid": "GPU-a", "utilization_percent": 4294967295, "power_watts": 70.0}
        answer = await reporter.samples({"at": time.time() - at, "host": host, "gpus": [gpu]})
        assert answer.json()["dropped"] == {"cpu_percent": 1, "read_iops": 1, "utilization_percent": 1}
    assert (await Agent.objects.aget()).dropped_values == {
        "cpu_percent": 2,
        "read_iops": 2,
        "utilization_percent": 2,
    }
    stored = await GpuSample.objects.afirst()
    assert stored is not None
    assert (stored.utilization_percent, stored.power_watts) == (None, 70.0)
    host_row = await HostSample.objects.afirst()
    assert host_row is not None
    assert (host_row.cpu_percent, host_row.load1) == (None, 2.0)
    assert host_row.devices == {"disks": [{"device": "sda", "write_iops": 1.0}]}


@pytest.mark.django_db(transaction=True)
async def test_a_body_with_nan_in_it_is_taken_without_it(reporter):
    now = time.time()
    body = batch({"at": now, "host": {"load1": math.nan, "cpu_percent": 5}})
    assert b"NaN" in json.dumps(body).encode()
    answer = await reporter.post("samples", body)
    assert (answer.status_code, answer.json()["dropped"]) == (200, {"load1": 1})
