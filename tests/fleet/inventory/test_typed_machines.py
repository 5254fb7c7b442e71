"""Machines that people type, and what people say of machines that a provider lists."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.inventory.machines import TypedMachine, add_machine, retire_machine, update_machine
from fleet.inventory.poll import poll_account
from fleet.providers.base import InstanceState
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON


@pytest.fixture
def actor(bob) -> Actor:
    return Actor(bob, "bob", "page")


def typed(**fields) -> TypedMachine:
    return TypedMachine(**{"name": "desk-01", "gpu_raw": "NVIDIA GeForce RTX 4090", "gpu_count": 2, **fields})


def test_a_typed_machine_is_managed_running_and_billed(acme, actor):
    machine = add_machine(actor=actor, team=acme, typed=typed(price_per_hour=Decimal("0.8"), currency="CNY"), now=NOON)
    assert machine.account.kind == "manual"
    assert (machine.managed, machine.state, machine.billing) == (True, "running", "full")
    assert (machine.gpu_raw, machine.gpu_model) == ("NVIDIA GeForce RTX 4090", "RTX 4090")
    observation = machine.observations.get()
    assert (observation.price_per_hour, observation.currency, observation.seen_at) == (Decimal("0.8"), "CNY", NOON)
    entry = AuditEntry.objects.get(action="instance.add")
    assert (entry.actor, entry.new["name"], entry.new["price_per_hour"]) == (actor.user, "desk-01", "0.8")


def test_no_price_is_unknown_and_not_free(acme, actor):
    machine = add_machine(actor=actor, team=acme, typed=typed())
    assert machine.price_per_hour is None


def test_two_machines_may_have_one_name(acme, actor):
    first, second = (add_machine(actor=actor, team=acme, typed=typed()) for _ in range(2))
    assert first.external_id != second.external_id


def test_a_stopped_one_costs_its_disks_and_one_given_back_is_gone(acme, actor):
    machine = add_machine(actor=actor, team=acme, typed=typed(), now=NOON)
    say = {"managed": True, "owner": None, "project": None, "labels": {}, "actor": actor, "now": NOON}
    stopped = update_machine(instance=machine, typed=typed(state=InstanceState.STOPPED), **say)
    assert (stopped.billing, stopped.provider_stopped_at) == ("storage", NOON)
    back = update_machine(instance=machine, typed=typed(state=InstanceState.TERMINATED), **say)
    assert (back.billing, back.gone_at) == ("none", NOON)
    assert machine.observations.count() == 3


def test_what_people_say_of_a_listed_machine_is_kept_and_audited(lab, provider, listed, actor, bob, project):
    provider.machines = [listed("i-1")]
    poll_account(account=lab, now=NOON)
    machine = lab.instances.get()
    update_machine(
        actor=actor, instance=machine, managed=True, owner=bob, project=project, labels={"use": "eval"}, now=NOON
    )
    machine.refresh_from_db()
    assert (machine.managed, machine.owner, machine.project, machine.labels) == (True, bob, project, {"use": "eval"})
    entry = AuditEntry.objects.get(action="instance.update")
    assert entry.old == {"managed": False, "owner": None, "project": None, "labels": {}}
    assert machine.observations.count() == 1


def test_what_the_provider_says_of_it_is_not_ours_to_type(lab, provider, listed, actor):
    provider.machines = [listed("i-1")]
    poll_account(account=lab, now=NOON)
    with pytest.raises(ValueError, match="listed by its provider"):
        update_machine(
            actor=actor,
            instance=lab.instances.get(),
            managed=True,
            owner=None,
            project=None,
            labels={},
            typed=typed(),
        )


def test_one_that_is_no_more_is_retired_once(acme, actor):
    machine = add_machine(actor=actor, team=acme, typed=typed(price_per_hour=Decimal(1)), now=NOON)
    assert retire_machine(actor=actor, instance=machine, now=NOON)
    assert not retire_machine(actor=actor, instance=machine, now=NOON)
    assert (machine.state, machine.billing, machine.gone_at) == ("terminated", "none", NOON)
    assert list(machine.observations.order_by("pk").values_list("billing", flat=True)) == ["full", "none"]


def test_a_listed_one_is_not_ours_to_retire(lab, provider, listed, actor):
    provider.machines = [listed("i-1")]
    poll_account(account=lab, now=NOON)
    with pytest.raises(ValueError, match="listed by its provider"):
        retire_machine(actor=actor, instance=lab.instances.get(), now=NOON)
