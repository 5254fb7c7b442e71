"""A machine that only a jump host reaches: real OpenSSH servers, the second in a network that leads nowhere else."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.inventory.models import SshHost
from fleet.inventory.ssh_keys import confirm_host_key
from jobs.book.models import Attempt, JobState
from jobs.logs.read import last_lines
from jobs.runner.drive import drive
from tests.jobs.conftest import ACTOR, go_on, newest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


@pytest.fixture
def inner(cluster):
    """The machine, and the servers of the jump host and its own."""
    (_jump, first), (machine, second) = cluster("jump"), cluster("inner")
    machine.ssh, machine.ssh_typed = [], f"root@{second.private} via root@{first.public}"
    machine.save()
    machine.ssh_hosts.all().delete()
    return machine, first, second


def error_of(job) -> str:
    Attempt.objects.filter(job=job).update(next_at=timezone.now())
    drive(attempt_id=newest(job).pk)
    return newest(job).nodes.get().error


def confirm(machine, shown: str) -> SshHost:
    host: SshHost = machine.ssh_hosts.exclude(offered="").get()
    assert confirm_host_key(actor=ACTOR, host=host, shown=shown)
    return host


def test_each_hop_shows_its_key_and_the_job_runs_behind_them(inner, begin):
    machine, first, second = inner
    job = begin("hostname -I 2>/dev/null; echo inside", machine)
    for server, address in ((first, first.public), (second, second.private)):
        assert error_of(job) in {"", "host_key_new"}
        assert error_of(job) == "host_key_new"
        host = confirm(machine, newest(job).nodes.get().error_detail)
        assert (host.host, host.port) == (address, server.port)
    go_on(job)
    assert job.state == JobState.SUCCEEDED
    assert [line.text for line in last_lines(newest(job).nodes.get())][-1] == "inside"
    assert newest(job).nodes.get().address == f"root@{second.private}:22 via root@{first.public}:22"
    assert not first.jobs.exists(), "nothing of it on the jump host"


def test_a_jump_host_with_another_key_gets_nothing(inner, begin):
    machine, first, second = inner
    for server, address, shown in ((first, first.public, second), (second, second.private, second)):
        SshHost.objects.create(
            instance=machine, host=address, port=server.port, pinned=shown.host_key, pinned_at=timezone.now()
        )
    job = begin("echo never", machine)
    assert error_of(job) in {"", "host_key_changed"}
    assert error_of(job) == "host_key_changed"
    assert machine.ssh_hosts.exclude(offered="").get().host == first.public
    assert not second.jobs.exists()


def test_who_stands_behind_the_jump_host_is_checked_as_well(inner, begin):
    """The jump host, or somebody beside it, answers in the machine's place."""
    machine, first, second = inner
    for server, address in ((first, first.public), (first, second.private)):
        SshHost.objects.create(
            instance=machine, host=address, port=server.port, pinned=server.host_key, pinned_at=timezone.now()
        )
    job = begin("echo never", machine)
    error_of(job)
    assert error_of(job) == "host_key_changed"
    assert not second.jobs.exists()
