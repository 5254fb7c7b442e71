"""How long a round of the diagnosis takes over running jobs with full logs: `python -m tests.bench.diagnosis`."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.bench.ingest import servers

if TYPE_CHECKING:
    from fleet.inventory.models import Instance, ProviderAccount

GPUS, LINES, MINUTES = 8, 3_000, 60


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def log_of(job: int, lines: int) -> bytes:
    """A trainer's log: settings, progress, and here and there a line of somebody else."""
    dice = random.Random(job)
    texts = ["  Instantaneous batch size per device = 8", "train-01:1:2 [0] NCCL INFO Connected all rings"]
    for step in range(1, lines - 1):
        loss = 2 + 3 / (1 + step / 50) + dice.random() / 10
        texts.append(
            f"{{'loss': {loss:.4f}, 'grad_norm': {dice.random():.3f}, 'learning_rate': 2e-05, 'epoch': 0.1, 'step': {step}}}"
            if step % 10
            else f"[2026-11-30 12:00:00] [INFO] [timer.py:260:stop] 0/{step}, RunningAvgSamplesPerSec={dice.random():.3f}, MemAllocated=31.2GB"
        )
    return ("\n".join(texts) + "\n").encode()


def fill(jobs: int, lines: int) -> None:
    from django.utils import timezone

    from fleet.inventory.models import ProviderAccount
    from fleet.teams.models import Team
    from fleet.telemetry.partitions import ensure_partitions

    now = timezone.now()
    began = now - timedelta(minutes=MINUTES)
    ensure_partitions(now=now, since=began - timedelta(days=1))
    team = Team.objects.create(name="Acme", slug="acme")
    account = ProviderAccount.objects.create(team=team, kind="vast", name="Vast.ai")
    moments = [began + timedelta(seconds=10 * number) for number in range(6 * MINUTES)]
    for number in range(jobs):
        run(number, measured(number, account, moments), log_of(number, lines), moments)


def measured(number: int, account: ProviderAccount, moments: Sequence[datetime]) -> Instance:
    """A machine with an hour of readings of itself and its GPUs."""
    from fleet.inventory.models import GPU, Instance
    from fleet.telemetry.models import GpuSample, HostSample

    name = f"m{number}"
    machine = Instance.objects.create(
        team=account.team, account=account, external_id=name, name=name, state="running", gpu_count=GPUS
    )
    gpus = GPU.objects.bulk_create(
        GPU(instance=machine, uuid=f"GPU-{number}-{index}", index=index, name="NVIDIA H100 80GB HBM3")
        for index in range(GPUS)
    )
    busy: dict[str, Any] = {"utilization_percent": 96, "power_watts": 640, "power_limit_watts": 700}
    host: dict[str, Any] = {"cpu_percent": 30, "cpu_iowait_percent": 1, "memory_used_bytes": 10**11}
    GpuSample.objects.bulk_create(
        GpuSample(gpu=gpu, sampled_at=at, interval_seconds=10, throttle_reasons=4, **busy)
        for gpu in gpus
        for at in moments
    )
    HostSample.objects.bulk_create(
        HostSample(instance=machine, sampled_at=at, interval_seconds=10, **host) for at in moments
    )
    return machine


def run(number: int, machine: Instance, log: bytes, moments: Sequence[datetime]) -> None:
    """A job on it that has run since then."""
    from jobs.book.models import Attempt, Job, JobKind, JobState, Node
    from jobs.logs.part import Part
    from jobs.logs.store import store_part
    from jobs.metrics.store import store_lines

    state = JobState.RUNNING
    job = Job.objects.create(
        team=machine.team, name=f"run-{number}", kind=JobKind.TRAINING, command="train", state=state
    )
    attempt = Attempt.objects.create(
        job=job, number=1, marker=f"rr-job-{number:08d}", directory="d", state=state, started_at=moments[0]
    )
    node = Node.objects.create(attempt=attempt, instance=machine, rank=0, state=state)
    store_part(node=node, part=Part(0, log), at=moments[-1])
    for place, at in enumerate(moments[::10]):
        store_lines(attempt=attempt, lines=[(place + 1, f"step {place * 10 + 1}/9000 loss=2.{place}")], at=at)


def measure() -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from jobs.findings.alerts.telling import tell_of_jobs
    from jobs.findings.tasks import examine_round

    for words, act in (
        ("a round of the diagnosis", lambda: examine_round(clock=time.monotonic)),
        ("the alerts of jobs", lambda: tell_of_jobs(now=timezone.now())),
    ):
        began, used = time.perf_counter(), time.process_time()
        with CaptureQueriesContext(connection) as queries:
            count = act()
        say(
            f"{words}: {count} in {time.perf_counter() - began:.1f} s, {time.process_time() - used:.1f} s CPU of the process, {len(queries)} queries"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--lines", type=int, default=LINES)
    arguments = parser.parse_args()
    with servers():
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        fill(arguments.jobs, arguments.lines)
        measure()


if __name__ == "__main__":
    main()
