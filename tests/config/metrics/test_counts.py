"""Counts of several processes add up, outlive them, and wait while Valkey is away."""

from __future__ import annotations

import time
from functools import partial

import pytest
import redis

from config import task_meters
from config.metrics import counters
from config.tasks import note_worker_pulse
from fleet import meters as meters_module
from fleet.meters import (
    PROCESS_FORGET_SECONDS,
    PROCESS_STALE_SECONDS,
    PROCESSES_KEY,
    Meters,
    forget_dead_processes,
    read_counts,
    read_processes,
)

NOW = 1_000_000.0


def test_processes_add_up():
    for _ in range(2):
        one = Meters()
        one.count("scrapes", result="ok")
        one.count("scrapes", 2, result="timeout")
        one.flush(now=NOW)
        one.flush(now=NOW)
    assert read_counts() == {("scrapes", (("result", "ok"),)): 2, ("scrapes", (("result", "timeout"),)): 4}


def test_what_valkey_does_not_take_goes_with_the_next_flush(monkeypatch, caplog):
    one = Meters()
    one.count("scrapes", result="ok")
    away = redis.Redis(host="127.0.0.1", port=9, socket_connect_timeout=0.2)
    with monkeypatch.context() as patched:
        patched.setattr(meters_module, "client", lambda: away)
        one.flush(now=NOW)
        one.count("scrapes", result="ok")
        one.flush(now=NOW)
    assert caplog.text.count("Valkey is away") == 1
    one.flush(now=NOW)
    assert read_counts() == {("scrapes", (("result", "ok"),)): 2}


def test_figures_of_a_process_are_read_while_it_lives(monkeypatch):
    for name, clients in (("a:1", 3), ("b:1", 4)):
        one = Meters()
        one.show("websocket_clients", partial(float, clients))
        monkeypatch.setattr(meters_module, "process_name", partial(str, name))
        one.flush(now=NOW)
    assert [figures["websocket_clients"] for figures in read_processes(now=NOW + PROCESS_STALE_SECONDS)] == [3, 4]
    assert list(read_processes(now=NOW + PROCESS_STALE_SECONDS + 1)) == []
    forget_dead_processes(now=NOW + PROCESS_FORGET_SECONDS)
    assert meters_module.client().hlen(PROCESSES_KEY) == 2
    forget_dead_processes(now=NOW + PROCESS_FORGET_SECONDS + 1)
    assert meters_module.client().hlen(PROCESSES_KEY) == 0


def test_no_process_that_could_say_is_no_zero():
    assert "rackrent_websocket_clients" not in {family.name for family in counters.families(NOW)}


def test_every_task_is_counted_and_timed():
    note_worker_pulse.apply()
    note_worker_pulse.apply()
    runs = {labels: value for (name, labels), value in read_counts().items() if name == "task_runs"}
    assert runs == {(("result", "success"), ("task", "config.pulse")): 2}
    (family,) = [family for family in counters.families(time.time()) if family.name == "rackrent_task_seconds"]
    figures = {(sample.name.rpartition("_")[2], sample.labels.get("le")): sample.value for sample in family.samples}
    assert figures["bucket", "0.1"] == figures["bucket", "+Inf"] == figures["count", None] == 2
    assert 0 < figures["sum", None] < 0.2


def test_a_task_that_fails_is_counted_as_failed(monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("config.tasks.pulse.note", fail)
    note_worker_pulse.apply()
    assert (("result", "failure"), ("task", "config.pulse")) in {labels for _, labels in read_counts()}


@pytest.mark.parametrize(("seconds", "bound"), [(0.05, "0.1"), (0.1, "0.1"), (0.2, "0.5"), (3_400, "+Inf")])
def test_a_duration_falls_into_its_bucket(seconds, bound):
    assert task_meters.bucket_of(seconds) == bound
