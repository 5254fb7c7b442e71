"""Runs that have ended, with what was planned of them and what was measured."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from fleet.inventory.models import GPU, Instance
from fleet.telemetry.models import GpuSample
from fleet.telemetry.partitions import ensure_partitions
from jobs.book.models import Attempt, JobState
from jobs.metrics.models import JobPoint
from tests.jobs.spending.conftest import priced

GIB = 1024**3
NOW = timezone.now().replace(microsecond=0)
BEGAN = NOW - timedelta(hours=2)
PLACE = [{"host": "198.51.100.7", "port": 22}]
PREDICTED: dict[str, Any] = {
    "work": "training",
    "method": "lora",
    "model": "meta-llama/Meta-Llama-3.1-8B",
    "gpu": "h100-sxm-80",
    "gpus": 2,
    "launcher": "torchrun",
    "memory_bytes": 40 * GIB,
    "seconds_per_step": 2.0,
    "tokens_per_second": 8192.0,
    "steps": 1000,
    "hours": 0.5,
    "cost": "2.00",
    "cost_per_hour": "4.00",
    "currency": "USD",
    "settings": {"global_batch": 4, "sequence_length": 4096},
}


@pytest.fixture(autouse=True)
def yesterday(db) -> None:
    """Shortly after midnight these runs began the day before."""
    ensure_partitions(now=NOW, since=BEGAN)


@pytest.fixture
def machine(make_instance) -> Instance:
    made: Instance = make_instance(name="a", gpus=2, managed=True, ssh=PLACE, price_per_hour="4", currency="USD")
    priced(made, "4", since=NOW - timedelta(days=1))
    return made


@pytest.fixture
def ran(begin, machine) -> Callable[..., Attempt]:
    """ran() is an attempt of an hour that ended an hour ago, as it was planned where nothing else is said."""

    def make(
        *, predicted: dict[str, Any] | None = None, state: str = "succeeded", on: Instance | None = None
    ) -> Attempt:
        job = begin("true", on or machine, predicted=PREDICTED if predicted is None else predicted)
        attempt: Attempt = job.attempts.get()
        end_with(attempt, state)
        return attempt

    return make


def end_with(attempt: Attempt, state: str) -> None:
    attempt.created_at = attempt.started_at = BEGAN
    attempt.state, attempt.ended_at = JobState(state), BEGAN + timedelta(hours=1)
    attempt.save()
    for node in attempt.nodes.all():
        assert node.hold is not None
        node.hold.started_at, node.hold.ended_at = attempt.created_at, attempt.ended_at
        node.hold.save()
    job = attempt.job
    job.state, job.started_at, job.ended_at = attempt.state, attempt.started_at, attempt.ended_at
    job.save()


def used_memory(machine: Instance, *peaks: int, minutes: range = range(60)) -> None:
    """Each GPU's memory in GiB, a reading a minute; the peak is in the middle."""
    middle = (minutes.start + minutes.stop) // 2
    for gpu, peak in zip(GPU.objects.filter(instance=machine).order_by("index"), peaks, strict=True):
        GpuSample.objects.bulk_create(
            GpuSample(
                gpu=gpu,
                sampled_at=BEGAN + timedelta(minutes=minute),
                memory_used_bytes=(peak if minute == middle else peak - 1) * GIB,
                interval_seconds=60,
            )
            for minute in minutes
        )


def told(attempt: Attempt, count: int = 20, *, every: float = 3.0, steps: int = 1000, **figures: Any) -> None:
    """Points of a run of `steps`, evenly over it, that takes `every` seconds a step but 30 in its first."""
    for number in range(1, count + 1):
        figures.setdefault("seconds_per_step", every)
        said = {**figures, **({"seconds_per_step": 30.0} if number == 1 else {})}
        JobPoint.objects.create(
            attempt=attempt,
            at=BEGAN + timedelta(minutes=number),
            source="log",
            step=number * steps // count,
            steps=steps,
            **said,
        )
