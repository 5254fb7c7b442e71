"""Any sequence of acts, lies, deaths of workers and steps of the clock.

Never is a machine first shown as stopped or gone while its provider bills it in full, and none that a provider lists, or named to us, is
lost from the list. When the lies are over every operation ends, and what is shown is the truth.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import ClassVar

import hypothesis.strategies as st
import pytest
import time_machine
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.bulk import request_act
from fleet.inventory.operations.claims import LEASE
from fleet.inventory.operations.models import OPEN_STATES, Operation
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.operations.requests import request_launch
from fleet.inventory.operations.sweeping import sweep
from fleet.providers.base import Billing, CreateSpec, InstanceState
from fleet.teams.audit import Actor
from tests.fleet.inventory.operations.conftest import Driver
from tests.fleet.inventory.operations.killing import Killed, Killer, killing
from tests.fleet.inventory.operations.liar import NOON, Liar, Machine, World

NAMES = ("ignored", "forgotten", "lost", "dropped", "partial", "late", "returns", "busy", "gone")
LIES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), max_size=3)
KINDS = st.sampled_from(["stop", "terminate", "stop", "terminate", "start", "reboot"])
SPANS = st.sampled_from([1, 15, 45, 150])
OFF = {InstanceState.STOPPED, InstanceState.TERMINATED}
SPEC = CreateSpec(name="train", offer_id="h100x8")


class AnyLies(RuleBasedStateMachine):
    account: ClassVar[ProviderAccount]
    actor: ClassVar[Actor]

    def __init__(self) -> None:
        super().__init__()
        # Each example is undone: the next begins with an empty fleet.
        self.undone = transaction.atomic()
        self.undone.__enter__()
        self.world = Liar.world = World()
        self.traveller = time_machine.travel(NOON, tick=False)
        self.driver = Driver(self.world, self.account, self.traveller.start())
        self.shown_off: set[int] = set()
        self.world.add("train-01")
        self.world.add("train-02", InstanceState.STOPPED)
        self.driver.poll()
        self.driver.wait(1)
        Instance.objects.update(managed=True)

    def teardown(self) -> None:
        try:
            self.honest_again()
        finally:
            self.undo()

    def undo(self) -> None:
        self.traveller.stop()
        transaction.set_rollback(True)
        self.undone.__exit__(None, None, None)

    def machines(self) -> list[Instance]:
        return list(Instance.objects.select_related("account", "team").order_by("pk"))

    @rule(kind=KINDS, number=st.integers(0, 3), lies=LIES, seconds=SPANS)
    def ask(self, kind: str, number: int, lies: dict[str, int], seconds: int) -> None:
        self.world.lies.update(lies)
        machines = self.machines()
        more = {"accept_loss": True} if kind in {"stop", "terminate"} else {}
        with contextlib.suppress(Refused):
            request_act(actor=self.actor, instance=machines[number % len(machines)], kind=kind, **more)
        self.driver.run(seconds)

    @precondition(lambda self: len(self.world.machines) < 5)
    @rule(lies=LIES, seconds=SPANS)
    def order(self, lies: dict[str, int], seconds: int) -> None:
        self.world.lies.update(lies)
        request_launch(actor=self.actor, account=self.account, spec=SPEC, offer={})
        self.driver.run(seconds)

    @rule(seconds=st.sampled_from([60, 3600]))
    def broken(self, seconds: int) -> None:
        self.world.until["broken"] = self.world.now + timedelta(seconds=seconds)

    @rule(at=st.integers(0, 8))
    def work_and_die(self, at: int) -> None:
        with killing(Killer(at)):
            try:
                self.driver.step()
            except Killed:
                self.driver.wait(LEASE.total_seconds())

    @rule(lies=LIES, seconds=SPANS)
    def listen(self, lies: dict[str, int], seconds: int) -> None:
        self.world.lies.update(lies)
        self.driver.wait(seconds)
        self.driver.poll()
        sweep(now=self.driver.now)

    @invariant()
    def nothing_that_is_billed_is_newly_shown_as_off(self) -> None:
        off = {row.pk: row for row in self.machines() if row.state in OFF or row.gone_at}
        for pk in off.keys() - self.shown_off:
            truth = self.truth(off[pk])
            assert truth.billing is not Billing.FULL, f"{truth} is shown as {off[pk].state}"
        self.shown_off = set(off)

    @invariant()
    def what_was_named_to_us_is_in_the_list(self) -> None:
        named = Operation.objects.filter(kind="launch").exclude(result_id="").values_list("result_id", flat=True)
        assert set(named) <= {row.external_id for row in self.machines()}

    def truth(self, row: Instance) -> Machine:
        return self.world.machines[row.external_id]

    def honest_again(self) -> None:
        """The provider tells the truth from here on: all is proved, and the list is the truth."""
        self.world.lies.clear()
        self.world.until.clear()
        for _ in range(60):
            if not Operation.objects.filter(state__in=OPEN_STATES).exclude(kind="reboot").exists():
                break
            self.driver.jump(self.driver.now + timedelta(seconds=300))
            self.driver.step()
            sweep(now=self.driver.now)
        for _ in range(4):
            self.driver.wait(400)
            self.driver.poll()
            sweep(now=self.driver.now)
            self.driver.step()
        stuck = Operation.objects.filter(state__in=OPEN_STATES).exclude(kind__in=["reboot", "terminate"])
        assert not stuck.exists(), list(stuck.values())
        self.nothing_that_is_listed_is_lost()

    def nothing_that_is_listed_is_lost(self) -> None:
        rows = {row.external_id: row for row in self.machines()}
        for machine in self.world.machines.values():
            if self.world.present(machine):
                assert machine.id in rows, machine
                assert rows[machine.id].gone_at is None, machine
                assert rows[machine.id].state == machine.state, machine


@pytest.mark.timeout(300)
def test_in_no_sequence_is_a_machine_shown_as_off_that_is_billed_or_lost(rented, by_alice, world, settings_of_lies):
    AnyLies.account, AnyLies.actor = rented, by_alice
    run_state_machine_as_test(AnyLies, settings=settings_of_lies)


def test_a_prover_that_believes_the_first_answer_is_noticed(rented, by_alice, world, monkeypatch):
    """What the sequences look for is there to be found."""
    AnyLies.account, AnyLies.actor = rented, by_alice
    monkeypatch.setattr("fleet.inventory.operations.proof.GONE_READS", 1)
    monkeypatch.setattr("fleet.inventory.operations.proof.GONE_AFTER", timedelta(0))
    monkeypatch.setattr("fleet.inventory.operations.proving.read_machine", lambda adapter, ref: adapter.instance(ref))
    lies = AnyLies()
    try:
        lies.ask(kind="stop", number=0, lies={"gone": 4}, seconds=15)
        with pytest.raises(AssertionError, match="is shown as terminated"):
            lies.nothing_that_is_billed_is_newly_shown_as_off()
    finally:
        lies.undo()


@pytest.fixture
def settings_of_lies() -> settings:
    return settings(
        max_examples=12,
        stateful_step_count=8,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
