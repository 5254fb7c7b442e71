"""The highest of each reading over a window, out of PostgreSQL and out of a distributed store: the same."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from fleet.idle.watch.highest import Wanted, window_begins
from fleet.idle.watch.judging import judge_all
from fleet.idle.watch.load import readings
from fleet.idle.watch.models import IdleVerdictRow
from fleet.telemetry.partitions import ensure_partitions
from tests.fleet.idle.watch.machines import NOW, History, ago, always, between, enrol, keep_latest, silent
from tests.fleet.telemetry.store.conftest import (  # noqa: F401  # fixtures
    engine,
    gpu_row,
    host_row,
    in_victoria,
    victoria,
)

MINUTE = timedelta(minutes=1)
SINCE = window_begins(NOW, timedelta(hours=1))
# One worked before the last rollup, the other has a gap; somebody was logged in for a while.
PAST = History(
    gpu={0: between(40, 38, utilization_percent=55.0, power_watts=300.0), 1: silent(30, 20.5)},
    host=between(35, 15, ssh_sessions=2, cpu_percent=40.0),
    step=timedelta(seconds=30),
)


@pytest.fixture
def written(engine, make_instance, cloud):  # noqa: F811
    """written(history, name) keeps a machine's past in the engine, and its latest readings where they always are."""
    ensure_partitions(now=NOW)

    def make(history, name="train-01"):
        begun = {"started_at": ago(days=2), "state_since": ago(days=2), "last_seen_at": ago(seconds=20)}
        machine = make_instance(gpus=2, name=name, account=cloud, **begun)
        enrol(machine, interval_seconds=30)
        gpus, hosts = history.samples(machine)
        engine.put(
            gpus=[gpu_row(gpu, at, **values) for gpu, at, values in gpus],
            hosts=[host_row(machine, at, **values) for at, values in hosts],
        )
        keep_latest(machine, gpus, hosts)
        return machine

    with time_machine.travel(NOW, tick=False):
        yield make


def test_windows_are_the_same_out_of_each(engine, written):  # noqa: F811
    machine = written(PAST)
    engine.roll_up(NOW, since=SINCE - timedelta(minutes=10))
    first, second = machine.gpus.order_by("index").values_list("pk", flat=True)
    found = readings().gpus(Wanted([first, second], [SINCE, SINCE], [30, 30]), now=NOW)
    assert (found[first].utilization_percent, found[first].lowest_utilization_percent) == (55.0, 0.0)
    assert (found[first].power_watts, found[first].tensor_activity) == (300.0, None)
    assert found[first].covered_seconds == pytest.approx((NOW - SINCE).total_seconds(), abs=90)
    assert found[first].covered_seconds - found[second].covered_seconds == pytest.approx(600, abs=31)
    hosts = readings().hosts(Wanted([machine.pk], [SINCE], [30]), now=NOW)
    assert (hosts[machine.pk].ssh_sessions, hosts[machine.pk].cpu_percent) == (2, 40.0)
    assert hosts[machine.pk].disk_write_bytes_per_second == 9000.0


def test_idle_and_active_ones_are_told_apart_with_each(engine, written):  # noqa: F811
    busy, idle = written(PAST, "busy"), written(History(), "idle")
    engine.roll_up(NOW, since=SINCE - timedelta(minutes=10))
    judge_all(now=NOW)
    assert IdleVerdictRow.objects.get(instance=idle).answer == "idle"
    assert IdleVerdictRow.objects.get(instance=busy).answer == "active"


def test_a_store_that_is_away_proves_nothing(resting, settings):
    machine = resting(History(host=always(cpu_percent=1.0)))
    settings.TELEMETRY_STORE = "prometheus"
    settings.TELEMETRY_READ_URL = settings.TELEMETRY_WRITE_URL = "http://127.0.0.1:9"
    judge_all(now=NOW)
    row = IdleVerdictRow.objects.get(instance=machine)
    assert (row.answer, [one["code"] for one in row.because]) == ("unknown", ["readings_unreachable"])
