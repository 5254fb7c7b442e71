"""The state of a GPU is judged by states.classify as its sample comes in, with what the machine itself read then."""

from __future__ import annotations

import time

import pytest

from fleet.states import GpuState
from fleet.telemetry.models import GpuSample
from fleet.telemetry.state_codes import SECONDS_COLUMNS, STATE_CODES, STATES_BY_CODE

GIB = 1 << 30
WAITS = {"cpu_percent": 5.0, "cpu_iowait_percent": 60.0, "pressure_io_percent": 44.0}


def test_every_state_has_a_code_and_a_column_of_its_own():
    assert set(STATE_CODES) == set(SECONDS_COLUMNS) == set(GpuState)
    assert {code: STATE_CODES[state] for code, state in STATES_BY_CODE.items()} == {code: code for code in range(1, 8)}


def gpu(**reading):
    return {"uuid": "GPU-a", "state": "ok", "memory_used_bytes": 9 * GIB, "process_count": 1, **reading}


@pytest.mark.django_db(transaction=True)
async def test_each_sample_is_judged_by_its_own_readings(reporter):
    now = time.time()
    told = [
        (gpu(utilization_percent=97.0, power_watts=600.0, power_limit_watts=700.0), None, GpuState.WORKING),
        (gpu(utilization_percent=0.0), None, GpuState.HELD_IDLE),
        (gpu(utilization_percent=0.0, memory_used_bytes=1, process_count=0), None, GpuState.FREE),
        (gpu(utilization_percent=99.0, sm_activity=0.0), None, GpuState.STALLED),
        ({"uuid": "GPU-a", "state": "lost"}, None, GpuState.UNKNOWN),
        (gpu(utilization_percent=None), None, GpuState.UNKNOWN),
        (gpu(utilization_percent=30.0), None, GpuState.WORKING),
        (gpu(utilization_percent=30.0), WAITS, GpuState.STARVED),
        # The machine's readings of a second ago still explain it.
        (gpu(utilization_percent=30.0), None, GpuState.STARVED),
    ]
    samples = [
        {"at": now - len(told) + number, "gpus": [reading], **({"host": host} if host else {})}
        for number, (reading, host, _state) in enumerate(told)
    ]
    assert (await reporter.samples(*samples)).status_code == 200
    rows = GpuSample.objects.order_by("sampled_at").values_list("state", flat=True)
    assert [STATES_BY_CODE[code or 0] async for code in rows] == [state for _reading, _host, state in told]
