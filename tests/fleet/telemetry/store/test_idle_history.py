"""Quiet times of the past are the same, whichever engine keeps the readings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.idle.dryrun.history import histories_of
from fleet.idle.policies.covering import JudgedBy
from fleet.idle.watch.models import GpuFloor
from tests.fleet.idle.dryrun.recording import listed
from tests.fleet.telemetry.rolling import reporting
from tests.fleet.telemetry.store.conftest import gpu_row, host_row

HOURS, DAYS, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
NOON = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - DAYS
START = NOON - 2 * HOURS
HOST = {
    "cpu_percent": 2.0,
    "disk_read_bytes_per_second": 0.0,
    "disk_write_bytes_per_second": 1_000.0,
    "network_rx_bytes_per_second": 500.0,
    "network_tx_bytes_per_second": 0.0,
    "ssh_sessions": 0,
    "jupyter_busy_kernels": 0,
}


@pytest.fixture
def machine(engine, make_instance, time_machine, days):
    time_machine.move_to(NOON + 5 * MINUTE, tick=True)
    days(NOON, NOON - 2 * DAYS)
    found = make_instance(gpus=2)
    found.gpus.update(first_seen_at=NOON - 9 * DAYS)
    listed(found, NOON - 8 * DAYS, provider_started_at=NOON - 9 * DAYS)
    reporting(found, every=60)
    return found


def test_quiet_times_and_what_ends_them(engine, machine):
    """Work for ten minutes; an upload at minute 60; silence from 70 to 75, after which half an hour has to be read; one GPU draws more than at rest at minute 110."""
    first, second = machine.gpus.order_by("index")
    GpuFloor.objects.create(gpu=first, watts=60.0, reckoned_at=NOON)
    gpus, hosts = [], []
    for minute in (*range(70), *range(75, 120)):
        at = START + minute * MINUTE
        busy = 70.0 if minute < 10 else 0.0
        gpus.append(gpu_row(first, at, utilization_percent=busy, power_watts=90.0 if minute == 110 else 61.0))
        gpus.append(gpu_row(second, at, utilization_percent=0.0, sm_activity=0.0, power_watts=120.0))
        hosts.append(host_row(machine, at, **{**HOST, "network_tx_bytes_per_second": 4e7 if minute == 60 else 0.0}))
    engine.put(gpus=gpus, hosts=hosts)
    engine.roll_up(NOON + 5 * MINUTE, since=START)

    [history] = histories_of([machine], {machine.pk: JudgedBy()}, days=1, now=NOON)
    found = [((one.start - START) // MINUTE, (one.end - START) // MINUTE, one.ending) for one in history.quiet]
    assert found == [(10, 60, "return"), (65, 70, "unknown"), (100, 110, "return"), (115, 120, "now")]
    assert [one.because for one in history.quiet if one.because] == [("network",), ("power",)]
