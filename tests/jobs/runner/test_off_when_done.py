"""Off when done: the provider is asked, over its real HTTP API, and believed only when it shows the machine stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.inventory.accounts import create_account
from fleet.inventory.machines import place_hold
from fleet.inventory.models import HoldKind, Instance, ProviderAccount
from fleet.inventory.operations.models import Operation
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from jobs.book.models import JobState, WhenDone
from tests.e2e.acting import poll, prove
from tests.fleet.sandbox.loopback import serving
from tests.jobs.conftest import ACTOR, go_on

pytestmark = pytest.mark.django_db(transaction=True)


class Hurried:
    """The time at the provider: each look finds it 15 seconds later."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead

    def push(self) -> None:
        self.ahead += 15.0


@pytest.fixture
def clock() -> Hurried:
    return Hurried()


@pytest.fixture
def account(acme, clock, tmp_path, monkeypatch) -> Iterator[ProviderAccount]:
    desk = Desk(tmp_path / "provider.json", clock)
    with serving(SandboxAPI(desk)) as port:
        monkeypatch.setenv("SANDBOX_PORT", str(port))
        account = create_account(
            actor=ACTOR, team=acme, kind="sandbox", name="Lab", values={"key": desk.full_key}, monitor_only=False
        )
        poll(account)
        yield account


@pytest.fixture
def rented(account, machine_of) -> Instance:
    """A machine that the provider lists as running, with a real sshd where it is reached."""
    typed, _server = machine_of()
    machine = Instance.objects.filter(account=account, state="running").earliest("pk")
    Instance.objects.filter(pk=machine.pk).update(ssh=typed.ssh, managed=True)
    typed.ssh_hosts.update(instance=machine)
    machine.refresh_from_db()
    return machine


def test_the_machine_is_stopped_and_that_is_proved(rented, begin, clock):
    job = go_on(begin("echo done", rented, when_done=WhenDone.STOP))
    assert job.state == JobState.SUCCEEDED
    operation = prove(clock.push)
    assert (operation.kind, operation.instance_id, operation.requested_label) == ("stop", rented.pk, "jobs")
    rented.refresh_from_db()
    assert rented.state == "stopped"
    assert not job.events.filter(kind="not_stopped").exists()


def test_a_machine_of_a_job_that_failed_is_stopped_too(rented, begin, clock):
    job = go_on(begin("exit 9", rented, when_done=WhenDone.STOP))
    assert job.state == JobState.FAILED
    assert prove(clock.push).kind == "stop"


def test_what_somebody_holds_stays_on_and_that_is_said(rented, begin):
    place_hold(actor=ACTOR, instance=rented, kind=HoldKind.PERSON, reason="I look at it", now=timezone.now())
    job = go_on(begin("true", rented, when_done=WhenDone.STOP))
    said = job.events.get(kind="not_stopped")
    assert (said.values["code"], said.values["machine"]) == ("held", rented.name)
    assert not Operation.objects.exists()


@pytest.mark.parametrize("when_done", [WhenDone.IDLE, WhenDone.RELEASE])
def test_otherwise_nobody_asks_the_provider(rented, begin, when_done):
    go_on(begin("true", rented, when_done=when_done))
    assert not Operation.objects.exists()
