"""The dashboard dies in the middle of a training, and the network with it: the training goes on, and nothing of it is missing afterwards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import reverse

from jobs.book.models import JobState
from jobs.logs.read import whole_log
from jobs.metrics.models import JobPoint
from tests.jobs.conftest import newest
from tests.jobs.network import wait_until
from tests.jobs.trainings.product import running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
STEPS = 120


def points(job) -> list[int | None]:
    return list(JobPoint.objects.filter(attempt=newest(job)).order_by("step").values_list("step", flat=True))


def own_log(server, job) -> str:
    return Path(server.jobs, newest(job).marker, "log").read_text()


def last_step(text: str) -> int:
    return max((int(step) for step in re.findall(r"^step (\d+)/", text, re.MULTILINE)), default=0)


def test_worker_and_web_are_killed_and_the_network_is_cut(cluster, begin, torchrun, alice, acme, tmp_path):
    (a, first), (b, second) = cluster("a"), cluster("b")
    job = begin(f"{torchrun} {STEPS} --seconds 0.2", a, b, processes_per_node=1)
    address = reverse("job", args=[acme.slug, job.pk])
    with running(tmp_path / "home") as product:
        wait_until(lambda: len(points(job)) >= 5, seconds=120)
        assert re.search(rf"step \d+/{STEPS} loss=", product.page(alice, address))
        product.kill()
    for server in (first, second):
        server.end_connections()
        server.cut()
    read, reached = len(points(job)), last_step(own_log(first, job))
    wait_until(lambda: last_step(own_log(first, job)) > reached + 10)
    assert len(points(job)) == read, "nobody reads it meanwhile"
    for server in (first, second):
        server.mend()
    with running(tmp_path / "home") as product:
        wait_until(lambda: _has_ended(job), seconds=150)
        page = product.page(alice, address)
    nodes = list(newest(job).nodes.order_by("rank"))
    assert (job.state, [node.exit_code for node in nodes]) == (JobState.SUCCEEDED, [0, 0])
    assert points(job) == list(range(1, STEPS + 1))
    for node, server in zip(nodes, (first, second), strict=True):
        kept = b"".join(whole_log(node)).decode()
        assert kept == own_log(server, job)
        assert kept.count(f"rank {node.rank} of 2 begins at 1\n") == 1
    assert f"step {STEPS}/{STEPS}" in page
    assert job.attempts.count() == 1


def _has_ended(job) -> bool:
    job.refresh_from_db()
    return not job.is_open
