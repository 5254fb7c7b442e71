"""Evidence comes from rows, and findings stay rows: brought up to date, and kept when they are over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.inventory.models import GPU
from fleet.telemetry.models import GpuSample, HostLatest, HostSample, MachineEvent
from jobs.book.models import Attempt, JobState
from jobs.diagnosis.evidence import Kind
from jobs.findings.gather import gather
from jobs.findings.keep import examine
from jobs.findings.models import JobFinding
from jobs.findings.tasks import LAST, ROUND_SECONDS, examine_round
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.metrics.store import store_lines
from jobs.serving.models import Probe, Server
from tests.jobs.conftest import newest

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)
# Of one machine, whatever it runs and however long.
MOST_QUERIES = 16
OUT_OF_MEMORY = (
    "Traceback (most recent call last):\n  loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 512.00 MiB is free.\n"
)


@pytest.fixture
def attempt(begin, make_instance):
    machine = make_instance(gpus=2, managed=True, ssh=[{"host": "198.51.100.7", "port": 22}])
    job = begin(
        "true",
        machine,
        predicted={"memory_bytes": 60e9, "terms": {"activations_mlp": 8e9}, "settings": {"batch_size": 4}},
    )
    made = newest(job)
    made.started_at, made.state = NOW - timedelta(minutes=30), JobState.RUNNING
    made.save()
    return made


def say(attempt, text: str) -> None:
    node = attempt.nodes.get()
    store_part(node=node, part=Part(node.log_offset, text.encode()), at=NOW)


def test_evidence_of_everything_that_was_kept(attempt):
    instance = attempt.nodes.get().instance
    say(attempt, "step 1/9 loss=2.0\nsecond line\n")
    store_lines(attempt=attempt, lines=[(1, "step 1/9 loss=2.0")], at=NOW)
    for gpu in GPU.objects.filter(instance=instance):
        GpuSample.objects.bulk_create(
            GpuSample(
                gpu=gpu,
                sampled_at=NOW - timedelta(seconds=5 * number),
                utilization_percent=40 + gpu.index,
                power_limit_watts=700,
                throttle_reasons=0x20 if number <= 6 * gpu.index else 0x4,
                interval_seconds=5,
            )
            for number in range(1, 61)
        )
    HostSample.objects.create(
        instance=instance,
        sampled_at=NOW - timedelta(seconds=9),
        cpu_percent=12,
        filesystem_used_bytes=98,
        interval_seconds=5,
    )
    HostLatest.objects.create(
        instance=instance, sampled_at=NOW, received_at=NOW, memory_total_bytes=512, filesystem_total_bytes=100
    )
    MachineEvent.objects.create(instance=instance, at=NOW - timedelta(minutes=1), kind="xid", code=31)
    evidence = gather(attempt, now=NOW)
    assert (evidence.kind, evidence.exit_code, evidence.settings) == (Kind.TRAINING, None, {"batch_size": 4.0})
    assert [(line.number, line.text) for line in evidence.lines] == [(1, "step 1/9 loss=2.0"), (2, "second line")]
    assert [(point.step, point.loss) for _at, point in evidence.points] == [(1, 2.0)]
    assert [round(gpu.utilization_percent.mean or 0) for gpu in evidence.gpus] == [40, 41]
    assert [gpu.power_limit_watts for gpu in evidence.gpus] == [700.0, 700.0]
    assert [(gpu.hot, gpu.capped) for gpu in evidence.gpus] == [(0.0, 1.0), (0.1, 0.9)]
    assert (evidence.command, evidence.stopped) == ("true", False)
    assert (evidence.host.cpu_percent.last, evidence.host.disk_used_ratio.last) == (12.0, 0.98)
    assert [(event.kind, event.code) for event in evidence.events] == [("xid", 31)]
    assert evidence.predicted.terms == {"activations_mlp": 8e9}


def test_a_finding_is_a_row_with_its_lines_and_remedies(attempt):
    say(attempt, "first\n" + OUT_OF_MEMORY)
    (row,) = examine(attempt, now=NOW)
    assert (row.code, row.sure, row.lines, row.gpus) == ("oom_batch", "certain", [4], [0])
    assert row.remedies[0] == {"code": "smaller_batch", "values": {"from": 4, "to": 2}, "saves_bytes": 4e9}
    assert attempt.job.events.get(kind="found").values == {"code": "oom_batch"}


def test_it_is_told_once_and_stays_when_it_is_over(attempt):
    say(attempt, OUT_OF_MEMORY)
    examine(attempt, now=NOW)
    examine(attempt, now=NOW + timedelta(minutes=1))
    assert attempt.job.events.filter(kind="found").count() == 1
    attempt.nodes.get().chunks.all().delete()
    assert examine(attempt, now=NOW + timedelta(minutes=2)) == []
    row = JobFinding.objects.get()
    assert (row.found_at, row.seen_at, row.gone_at) == (NOW, NOW + timedelta(minutes=1), NOW + timedelta(minutes=2))


def test_of_several_machines_the_fullest_disk_and_the_slowest_link_count(begin, make_instance):
    machines = [
        make_instance(name=f"n{number}", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}]) for number in (1, 2)
    ]
    attempt = newest(begin("true", *machines))
    for number, machine in enumerate(machines):
        sampled = {"sampled_at": NOW - timedelta(seconds=9), "interval_seconds": 5}
        HostSample.objects.create(
            instance=machine, filesystem_used_bytes=40 + 59 * number, memory_used_bytes=9, **sampled
        )
        HostLatest.objects.create(
            instance=machine, sampled_at=NOW, received_at=NOW, memory_total_bytes=10, filesystem_total_bytes=100
        )
        attempt.nodes.filter(instance=machine).update(facts={"network": {"gbit_per_second": 10 - number}})
    attempt.created_at = NOW - timedelta(minutes=30)
    host = gather(attempt, now=NOW).host
    assert (host.disk_used_ratio.last, host.memory_total_bytes) == (0.99, 10.0)
    assert host.link_bytes_per_second == 9e9 / 8


def test_memory_and_first_answers_of_a_server_are_those_that_were_looked_at(begin, make_instance):
    machine = make_instance(name="s1", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}])
    attempt = newest(begin("serve", machine, kind="serving", serving={"port": 8000}))
    server = Server.objects.create(node=attempt.nodes.get(), short_answers=[9.0, 0.2], looked_at=NOW)
    for number in range(3):
        Probe.objects.create(server=server, at=NOW - timedelta(minutes=number), is_up=True, memory_bytes=100 + number)
    attempt.created_at = NOW - timedelta(minutes=30)
    serving = gather(attempt, now=NOW + timedelta(seconds=1)).serving
    assert serving is not None
    assert (serving.process_memory_bytes.values, serving.short_answers) == ([102.0, 101.0, 100.0], (9.0, 0.2))


def test_a_job_that_somebody_ended_says_so(attempt):
    attempt.why = "asked"
    assert gather(attempt, now=NOW).stopped


def test_a_round_stops_in_time_and_goes_on_where_it_stopped(begin, make_instance, monkeypatch):
    cache.delete(LAST)
    attempts = [
        newest(
            begin("true", make_instance(name=f"r{number}", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}]))
        )
        for number in range(3)
    ]
    Attempt.objects.update(state=JobState.RUNNING)
    seen: list[int] = []

    def look(attempt, *, now):
        seen.append(attempt.pk)
        return []

    monkeypatch.setattr("jobs.findings.tasks.examine", look)
    clock = iter([0.0, 0.0, 1.0, ROUND_SECONDS, 0.0, 0.0, 1.0, 2.0])
    assert examine_round(clock=lambda: next(clock)) == 2
    assert examine_round(clock=lambda: next(clock)) == 3
    first, second, third = (attempt.pk for attempt in attempts)
    assert seen == [first, second, third, first, second]


def test_one_that_cannot_be_looked_at_keeps_no_other_from_it(begin, make_instance, monkeypatch, caplog):
    cache.delete(LAST)
    for number in range(2):
        begin("true", make_instance(name=f"e{number}", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}]))
    Attempt.objects.update(state=JobState.RUNNING)

    def breaks(attempt, *, now):
        raise RuntimeError("no")

    monkeypatch.setattr("jobs.findings.tasks.examine", breaks)
    assert examine_round(clock=lambda: 0.0) == 2
    assert "could not be diagnosed" in caplog.text


def test_each_machine_costs_one_query_for_its_log_and_no_more(begin, make_instance):
    counts = []
    for size in (1, 3):
        machines = [
            make_instance(name=f"m{size}-{number}", gpus=8, managed=True, ssh=[{"host": "198.51.100.7", "port": 22}])
            for number in range(size)
        ]
        made = newest(begin("true", *machines))
        with CaptureQueriesContext(connection) as captured:
            gather(made, now=timezone.now())
        counts.append(len(captured))
    assert counts[1] - counts[0] == 2
    assert counts[0] <= MOST_QUERIES
