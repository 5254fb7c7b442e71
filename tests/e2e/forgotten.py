"""The sandbox's forgotten notebook: its provider, which lies when told to, its agent's reports, and every worker of the idle room, one turn at a time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connections
from django.utils import timezone

from fleet.alerts.channels import sending
from fleet.idle.shutdown.driver import drive as drive_stops
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.watch.judging import judge_all
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.models import GPU, Instance
from fleet.inventory.operations.driver import drive as drive_operation
from fleet.inventory.operations.models import OPEN_STATES, Operation
from fleet.inventory.operations.sweeping import sweep
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.readings import Machine
from fleet.telemetry.models import Agent

from .acting import poll
from .reporting import Reporter, enrol

NAME = "dev-4090-01"
# More than the window of the sandbox's policy.
QUIET = timedelta(minutes=45)
PACE_SECONDS = 30
# What passes at the provider in a turn. A sandbox's machine takes 25 s to stop.
STEP_SECONDS = 15.0
MOST_TURNS = 40


@dataclass
class ProviderClock:
    """The real time, pushed on by each turn."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@dataclass
class Notebook:
    """`turn` is one beat of everything: report, verdict, stop, messages, operation. Nothing of it runs by itself."""

    api: SandboxAPI
    clock: ProviderClock
    instance: Instance
    reporter: Reporter
    machine: Machine = field(init=False)
    hands: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def __post_init__(self) -> None:
        desk: Desk = self.api.desk
        self.machine = Machine.of(desk.get(self.instance.external_id), born_at=desk.born_at)
        GPU.objects.bulk_create(
            GPU(instance=self.instance, uuid=uuid, index=index) for index, uuid in enumerate(self.machine.uuids)
        )
        long_ago = timezone.now() - timedelta(days=2)
        Agent.objects.filter(instance=self.instance).update(enrolled_at=long_ago, interval_seconds=PACE_SECONDS)
        now = time.time()
        ages = range(round(QUIET.total_seconds()), 0, -PACE_SECONDS)
        self.reporter.send(*(self.machine.sample(now - age) for age in ages))

    @property
    def stop(self) -> IdleStop:
        return IdleStop.objects.order_by("-pk")[0]

    def runs_at_its_provider(self) -> bool:
        return self.api.desk.get(self.instance.external_id).status == "running"

    def lies(self, **lies: int) -> None:
        """These from now on, and no others."""
        self.api.lies.set(lies)

    def turn(self) -> None:
        """In a thread of its own: beside Playwright's loop in this one, no sender could run another."""
        self.hands.submit(self._turn).result()

    def _turn(self) -> None:
        if self.runs_at_its_provider():
            self.reporter.send(self.machine.sample(time.time()))
        judge_all(now=timezone.now())
        IdleStop.objects.update(next_at=timezone.now())
        drive_stops(now=timezone.now())
        self._send()
        self._work_on_operations()
        self.clock.ahead += STEP_SECONDS

    def _send(self) -> None:
        for channel_id, claim in sending.claim_due(now=timezone.now(), at_once=settings.CHANNELS_AT_ONCE):
            sending.work_off(channel_id, claim)

    def until(self, stage: str) -> IdleStop:
        for _turn in range(MOST_TURNS):
            self.turn()
            if IdleStop.objects.exists() and self.stop.stage == stage:
                # What that stage has to say is sent.
                self.turn()
                return self.stop
        verdict = IdleVerdictRow.objects.get(instance=self.instance)
        raise AssertionError(
            f"never {stage}: {list(IdleStop.objects.values('stage', 'why'))}, {verdict.answer} {verdict.because}"
        )

    def is_asked_again(self) -> None:
        """By whoever proves the stop: its last order lies so far back that nothing can come of it any more."""
        day_ago = timezone.now() - timedelta(days=1)
        assert Operation.objects.filter(state__in=OPEN_STATES).update(sent_at=day_ago, accepted_at=day_ago)
        attempts = Operation.objects.latest("pk").attempts
        self.turn()
        assert Operation.objects.latest("pk").attempts == attempts + 1

    def close(self) -> None:
        self.hands.submit(connections.close_all).result()
        self.hands.shutdown()

    def waits(self, **moments: datetime) -> None:
        """Time that nobody wants to wait for: those of the stop lie as if it had passed."""
        assert IdleStop.objects.filter(pk=self.stop.pk).update(**moments)

    def _work_on_operations(self) -> None:
        for operation in Operation.objects.filter(state__in=OPEN_STATES):
            Operation.objects.filter(pk=operation.pk).update(next_at=timezone.now())
            drive_operation(operation_id=operation.pk)
        sweep(now=timezone.now())
        poll(self.instance.account)


def forgotten_notebook(*, url: str, api: SandboxAPI, clock: ProviderClock) -> Notebook:
    """The machine as listings show it, with an agent that has reported that nothing happens for longer than the policy waits."""
    instance = Instance.objects.select_related("account").get(name=NAME)
    return Notebook(api, clock, instance, enrol(url, instance))
