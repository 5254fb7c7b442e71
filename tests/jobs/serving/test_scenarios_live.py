"""Each kind of trouble once with a server that runs: requests over HTTP, looks through a real sshd, rows, evidence, finding.

The looks are taken one after the other, and written down at the times that a test gives them: a leak is seen over hours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from jobs.book.models import Attempt, Job
from jobs.findings.gather import gather
from jobs.findings.keep import examine
from jobs.runner.drive import drive
from tests.jobs.serving.conftest import Served

pytestmark = pytest.mark.django_db(transaction=True)
LOOK = timedelta(seconds=60)
MIB = 1024 * 1024


@contextmanager
def clients(served: Served, count: int, *, max_tokens: int) -> Iterator[None]:
    """So many people, each of whom asks again as soon as they are answered."""
    leave = threading.Event()

    def asks() -> None:
        while not leave.is_set():
            try:
                served.ask(max_tokens=max_tokens)
            except httpx.HTTPError:
                continue

    threads = [threading.Thread(target=asks, daemon=True) for _client in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        leave.set()
        for thread in threads:
            thread.join(20)


def began(served: Served, *, ago: timedelta) -> None:
    at = timezone.now() - ago
    Attempt.objects.filter(pk=served.attempt.pk).update(started_at=at, created_at=at)
    Job.objects.filter(pk=served.job.pk).update(started_at=at)


def watch(
    served: Served, looks: int, *, every: timedelta = LOOK, between: Callable[[int], object] | None = None
) -> set[str]:
    """Findings after so many looks, the last of them just now, with the log as far as it came."""
    ago = every * (looks + 2)
    began(served, ago=ago)
    begin = timezone.now() - ago
    served.becomes_ready(begin + timedelta(seconds=1))
    for number in range(looks):
        if between is not None:
            between(number)
        served.look(begin + every * (number + 2) - timedelta(seconds=1))
    Attempt.objects.filter(pk=served.attempt.pk).update(next_at=timezone.now(), claimed_until=None)
    drive(attempt_id=served.attempt.pk)
    return {row.code for row in examine(served.attempt, now=timezone.now())}


def grown(served: Served) -> float:
    """By how much the evidence says that its processes grew."""
    evidence = gather(served.attempt, now=timezone.now()).serving
    assert evidence is not None
    return evidence.process_memory_bytes.values[-1] - evidence.process_memory_bytes.values[0]


def test_a_queue(serve):
    served = serve("--slots", "2", "--token-seconds", "0.02", timeout_seconds=1)
    with clients(served, 12, max_tokens=20):
        assert watch(served, 5) == {"queueing"}


def test_long_computing(serve):
    served = serve("--slots", "64", "--token-seconds", "0.05", timeout_seconds=1)
    with clients(served, 4, max_tokens=40):
        assert watch(served, 6) == {"computing"}


def test_one_request_after_the_other(serve):
    served = serve("--slots", "1", "--token-seconds", "0.02", timeout_seconds=1)
    with clients(served, 8, max_tokens=15):
        assert watch(served, 5) == {"synchronous"}


def test_a_load_for_each_request(serve):
    served = serve("--load-each", "--load-seconds", "0.05")

    def asks(_number: int) -> None:
        for _request in range(2):
            served.ask()

    assert watch(served, 3, between=asks) == {"loads_each_request"}


def test_a_leak(serve):
    served = serve("--leak-bytes", str(8 * MIB))
    assert watch(served, 32, every=timedelta(minutes=3), between=lambda _number: served.ask()) == {"memory_leak"}
    assert grown(served) > 31 * 8 * MIB


def test_a_cache_that_fills_up_and_stays(serve):
    served = serve("--cache-bytes", str(16 * MIB), "--cache-most-bytes", str(96 * MIB))
    assert watch(served, 32, every=timedelta(minutes=3), between=lambda _number: served.ask()) == set()
    assert grown(served) > 60 * MIB


def test_a_healthy_server_under_changing_load(serve):
    served = serve(timeout_seconds=10)

    def asks(number: int) -> None:
        for _request in range(1 + 5 * (number % 3)):
            served.ask(max_tokens=8)

    assert watch(served, 8, between=asks) == set()
