from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from fleet.inventory.models import Instance, SshHost
from fleet.inventory.ssh_keys import set_ssh_key
from fleet.teams.audit import Actor
from jobs.book.manage import create_job
from jobs.book.models import Attempt, Job, JobKind
from jobs.book.order import Order
from jobs.nodes import meeting
from jobs.runner.drive import drive
from tests.jobs.machines import SshMachine, ssh_machine, user
from tests.jobs.network import NetMachine, network

ACTOR = Actor.system("test")


@pytest.fixture
def loopback(settings) -> None:
    settings.ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def machine_of(acme, make_instance, loopback, tmp_path: Path) -> Iterator[Callable[..., tuple[Instance, SshMachine]]]:
    """machine_of("a") is a machine of acme with a real OpenSSH server, its host key pinned."""
    key = set_ssh_key(actor=ACTOR, team=acme)
    with ExitStack() as stack:

        def make(name: str = "train-01", *, pinned: bool = True, more: str = "") -> tuple[Instance, SshMachine]:
            server = stack.enter_context(ssh_machine(tmp_path / name, welcome=key.public_key, more=more))
            place = {"host": "127.0.0.1", "port": server.port, "user": user(), "kind": "direct"}
            instance = make_instance(name=name, ssh=[place], managed=True)
            if pinned:
                SshHost.objects.create(
                    instance=instance,
                    host="127.0.0.1",
                    port=server.port,
                    pinned=server.host_key,
                    pinned_at=timezone.now(),
                )
            return instance, server

        yield make


@pytest.fixture
def cluster(
    acme, make_instance, settings, monkeypatch, tmp_path: Path
) -> Iterator[Callable[..., tuple[Instance, NetMachine]]]:
    """cluster("a") is a machine of acme in namespaces of its own, beside the others that it made (tests/jobs/network.py)."""
    key = set_ssh_key(actor=ACTOR, team=acme)
    monkeypatch.setattr(meeting, "SEND_SECONDS", 0.5)
    monkeypatch.setattr(meeting, "WAIT_SECONDS", 5.0)
    with network(tmp_path, welcome=key.public_key) as made:
        settings.ALLOWED_NETWORKS = ["127.0.0.0/8", f"{made.public}.0/24"]

        def make(name: str, **how: bool) -> tuple[Instance, NetMachine]:
            server = made.add(**how)
            place = {"host": server.public, "port": server.port, "user": "root", "kind": "direct"}
            instance = make_instance(name=name, ssh=[place], managed=True)
            SshHost.objects.create(
                instance=instance,
                host=server.public,
                port=server.port,
                pinned=server.host_key,
                pinned_at=timezone.now(),
            )
            return instance, server

        yield make


@pytest.fixture
def begin(acme):
    """begin("echo hi", machine, …) is a job of alice's team."""

    def make(command: str, *machines: Instance, actor: Actor = ACTOR, key: str = "", **order: Any) -> Job:
        fields: dict[str, Any] = {"name": "run-1", "kind": JobKind.TRAINING} | order
        return create_job(
            actor=actor,
            team=acme,
            order=Order(command=command, **fields),
            machines=machines,
            now=timezone.now(),
            idempotency_key=key,
        )

    return make


def newest(job: Job) -> Attempt:
    return job.attempts.order_by("-number")[0]


def go_on(job: Job, *, until: Callable[[Job], bool] | None = None, rounds: int = 400) -> Job:
    """Drives the job's newest attempt as the beat would, without its pauses, until it has ended or `until` says so."""
    for _round in range(rounds):
        job.refresh_from_db()
        if not job.is_open or (until is not None and until(job)):
            return job
        Attempt.objects.filter(job=job).update(next_at=timezone.now())
        drive(attempt_id=newest(job).pk)
    raise AssertionError(f"{job} is still {job.state}: {list(job.events.values_list('kind', 'detail', 'values'))}")
