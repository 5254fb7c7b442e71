"""An account at the lying provider, a machine of it, and a driver that the test winds by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import time_machine
from django.db.models import Min

from fleet.inventory.accounts import create_account
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.claims import due
from fleet.inventory.operations.driver import drive
from fleet.inventory.operations.models import OPEN_STATES, Operation
from fleet.inventory.operations.sweeping import sweep
from fleet.inventory.poll import claim, poll_account
from fleet.providers import registry
from fleet.teams.audit import Actor
from tests.fleet.inventory.operations.liar import NOON, Liar, ListsOnly, World


@pytest.fixture
def world(monkeypatch, kind) -> World:
    """The truth, with both lying adapters registered beside the real ones."""
    truth = World()
    monkeypatch.setattr(Liar, "world", truth)
    known = {**registry.adapters(), Liar.kind: Liar, ListsOnly.kind: ListsOnly}
    for module in ("inventory.adapters", "providers.registry"):
        monkeypatch.setattr(f"fleet.{module}.adapters", lambda: known)
    return truth


@pytest.fixture
def kind() -> str:
    return "liar"


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def by_alice(alice) -> Actor:
    return Actor(alice, "alice", "page")


@pytest.fixture
def rented(world, acme, kind, by_alice, clock) -> ProviderAccount:
    """An account that may act."""
    return create_account(
        actor=by_alice, team=acme, kind=kind, name="Lab", values={"key": "sk-secret"}, monitor_only=False
    )


class Driver:
    """Time, polls and workers, as the test wants them."""

    def __init__(self, world: World, account: ProviderAccount, clock: time_machine.Traveller) -> None:
        self.world, self.account, self.clock = world, account, clock

    @property
    def now(self) -> datetime:
        return self.world.now

    def wait(self, seconds: float) -> None:
        self.world.tick(seconds)
        self.clock.shift(seconds)

    def poll(self) -> None:
        account = ProviderAccount.objects.get(pk=self.account.pk)
        claim(account_id=account.pk, seen_next_poll_at=account.next_poll_at, now=self.now)
        account.refresh_from_db()
        poll_account(account=account, now=self.now)

    def step(self) -> None:
        """Every operation that is due, once."""
        for pk in list(due(now=self.now).order_by("pk").values_list("pk", flat=True)):
            drive(operation_id=pk)

    def run(self, seconds: float) -> None:
        """Goes on from one due operation to the next, for so long."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.step()
            sweep(now=self.now)
            self.jump(end)

    def jump(self, end: datetime) -> None:
        """To when the next operation is due, or to the end."""
        following = Operation.objects.filter(state__in=OPEN_STATES).aggregate(at=Min("next_at"))["at"] or end
        self.wait(max((min(following, end) - self.now).total_seconds(), 1))


@pytest.fixture
def driver(world, rented, clock) -> Driver:
    return Driver(world, rented, clock)


@pytest.fixture
def machine(world, driver) -> Instance:
    """A running machine that somebody registered."""
    world.add()
    driver.poll()
    driver.wait(1)
    Instance.objects.update(managed=True)
    return Instance.objects.select_related("account", "team").get()


@pytest.fixture
def fresh():
    """fresh(row) is that row as it is now."""

    def read(row: Operation | Instance) -> Operation | Instance:
        return type(row).objects.get(pk=row.pk)

    return read
