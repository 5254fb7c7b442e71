"""A machine at the lying provider, a policy that stops it, a channel of the team, and a clock that the test winds."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState, Route
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.shutdown.driver import drive
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.verdict.verdict import Answer, IdleVerdict
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.models import Instance
from tests.fleet.inventory.operations import conftest as operations
from tests.fleet.inventory.operations.conftest import Driver

by_alice, clock, driver = operations.by_alice, operations.clock, operations.driver
fresh, kind, machine = operations.fresh, operations.kind, operations.machine
rented, world = operations.rented, operations.world

WINDOW = timedelta(minutes=60)
STEP_SECONDS = 30
REASONS = [{"code": "utilization", "subject": "", "value": 0.0, "limit": 2.0}]


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr("fleet.inventory.operations.requests.hurry", lambda _pk: None)


@pytest.fixture(autouse=True)
def looks_again(monkeypatch):
    """The last look finds what the last verdict said: how machines are judged is another room's. `looks_again(answer)` changes that."""
    found: list[str] = []

    def look(*, instance: Instance, now: datetime) -> IdleVerdict:
        answer = found[-1] if found else IdleVerdictRow.objects.get(instance=instance).answer
        return IdleVerdict(Answer(answer), ())

    monkeypatch.setattr("fleet.idle.shutdown.fresh.judge_machine", look)
    return found.append


@pytest.fixture
def make_policy(acme):
    def make(**said):
        values = {"team": acme, "name": "Lab", "action": "stop", "grace_minutes": 6, **said}
        return IdlePolicy.objects.create(**values)

    return make


@pytest.fixture
def policy(make_policy):
    return make_policy()


@pytest.fixture
def channel(acme) -> Channel:
    made = Channel.objects.create(team=acme, kind="webhook", name="ops")
    Route.objects.create(channel=made)
    return made


class Room:
    """The idle room, as time goes on: verdicts, messages, the driver of stops and that of operations."""

    def __init__(self, driver: Driver, machine: Instance) -> None:
        self.driver, self.machine = driver, machine
        self.answer: str | None = "idle"
        self.delivers = True

    @property
    def now(self) -> datetime:
        return self.driver.now

    @property
    def stop(self) -> IdleStop:
        return IdleStop.objects.order_by("-pk")[0]

    @property
    def stage(self) -> str:
        return str(self.stop.stage)

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [call for call in self.driver.world.calls if call[0] in {"stop", "terminate"}]

    def judge(self) -> None:
        if self.answer is not None:
            values = {
                "answer": self.answer, "because": REASONS, "judged_at": self.now, "since": self.now,
                "quiet_since": self.now - WINDOW, "mode": "interactive", "window_minutes": 60,
            }  # fmt: skip
            IdleVerdictRow.objects.update_or_create(instance=self.machine, defaults=values)

    def send(self) -> None:
        """What the senders do."""
        if self.delivers:
            Delivery.objects.filter(state=DeliveryState.QUEUED).update(state=DeliveryState.SENT, sent_at=self.now)

    def turn(self) -> None:
        """One beat of everything."""
        self.judge()
        drive(now=self.now)
        self.send()
        self.driver.step()

    def go(self, minutes: float, answer: str | None = "idle") -> None:
        """So much time, beat after beat."""
        self.answer = answer
        for _beat in range(round(minutes * 60 / STEP_SECONDS)):
            self.turn()
            self.driver.wait(STEP_SECONDS)

    def until(self, stage: str, minutes: float = 90) -> None:
        for _beat in range(round(minutes * 60 / STEP_SECONDS)):
            self.turn()
            if IdleStop.objects.exists() and self.stage == stage:
                return
            self.driver.wait(STEP_SECONDS)
        raise AssertionError(f"never {stage}: {self.stage if IdleStop.objects.exists() else 'no stop'}")


@pytest.fixture
def room(driver, machine, policy, channel) -> Room:
    Instance.objects.update(price_per_hour=Decimal("4.00"), storage_price_per_hour=Decimal("0.50"))
    return Room(driver, Instance.objects.select_related("account", "team").get())
