"""Real trainings of a tiny model by real launchers, on machines with namespaces of their own: CPU torch, gloo."""

from __future__ import annotations

import os
import re
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.book.manage import stop_job
from jobs.book.models import JobState
from jobs.logs.read import whole_log
from jobs.metrics.models import JobPoint
from jobs.runner import course
from tests.jobs.conftest import ACTOR, go_on, newest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def steps(job) -> list[int | None]:
    return list(JobPoint.objects.filter(attempt=newest(job)).order_by("step").values_list("step", flat=True))


def logs(job) -> str:
    return "".join(b"".join(whole_log(node)).decode() for node in newest(job).nodes.order_by("rank"))


def processes(job) -> dict[int, dict[str, str]]:
    """Of the job, on whichever of these machines: pid -> its environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            text = (entry / "environ").read_bytes().decode("utf-8", "replace") if entry.name.isdigit() else ""
        except OSError:
            continue
        if newest(job).marker in text:
            found[int(entry.name)] = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    return found


def test_two_processes_of_accelerate_and_one_is_killed(cluster, begin, accelerate, monkeypatch):
    """kill -9 of a rank: its launcher ends the other and itself with 1, and that is what the job says."""
    job = begin(f"{accelerate} 100000", cluster("a")[0], processes_per_node=2)
    go_on(job, until=lambda job: len(steps(job)) >= 5)
    ranks = {env["RANK"]: pid for pid, env in processes(job).items() if "RANK" in env}
    assert set(ranks) == {"0", "1"}
    os.kill(ranks["1"], signal.SIGKILL)
    go_on(job)
    node = newest(job).nodes.get()
    assert (job.state, job.why, node.exit_code) == (JobState.FAILED, "exit", 1)
    assert "Signal 9 (SIGKILL)" in logs(job)
    assert not processes(job)


def test_two_machines_of_torchrun_train_together_and_are_stopped_together(cluster, begin, torchrun, monkeypatch):
    monkeypatch.setattr(course, "POLITE", timedelta(seconds=3))
    job = begin(f"{torchrun} 100000", *(cluster(name)[0] for name in ("a", "b")), processes_per_node=2)
    go_on(job, until=lambda job: len(steps(job)) >= 5)
    assert sum("RANK" in env for env in processes(job).values()) == 4
    point = JobPoint.objects.filter(attempt=newest(job)).order_by("line")[3]
    assert point.steps == 100_000
    assert point.loss
    assert point.seconds_per_step
    assert 0 < point.seconds_per_step < 60
    stop_job(actor=ACTOR, job=job, now=timezone.now())
    go_on(job)
    assert (job.state, job.why) == (JobState.STOPPED, "asked")
    assert not processes(job)
    # Two processes write into one log: their lines may run into each other.
    assert {f"rank {rank} of 4 begins at 1" for rank in range(4)} <= set(
        re.findall(r"rank \d of 4 begins at 1", logs(job))
    )
    assert all(node.exit_code not in {None, 0} for node in newest(job).nodes.all())
