from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.utils import timezone

from jobs.book.models import Attempt, Job, JobKind, JobState, Node
from tests.jobs.loadtest.engine import Watched, engine


@pytest.fixture
def server() -> Iterator[Watched]:
    with engine("--prefill-seconds", "0.01", "--token-seconds", "0.002", "--cache-tokens", "100") as running:
        yield running


@pytest.fixture
def serves(begin) -> Callable[..., Job]:
    """serves(machine, port=8000) is a job that runs and serves there."""

    def make(*machines, port: int = 8000, command: str = "vllm serve org/tiny", **more) -> Job:
        serving = {"port": port} | more.pop("serving", {})
        job: Job = begin(command, *machines, kind=JobKind.SERVING, serving=serving, **more)
        now = timezone.now()
        Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING, started_at=now)
        Attempt.objects.filter(job=job).update(state=JobState.RUNNING, started_at=now)
        Node.objects.filter(attempt__job=job).update(state=JobState.RUNNING, started_at=now)
        job.refresh_from_db()
        return job

    return make
