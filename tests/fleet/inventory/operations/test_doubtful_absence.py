"""A machine that a provider does not name: what that proves of an act, and what it does not."""

from __future__ import annotations

import pytest

from fleet.inventory.accounts import update_account
from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.requests import request_stop, request_terminate
from fleet.providers.base import Billing, InstanceState
from tests.fleet.inventory.operations import liar
from tests.fleet.inventory.operations.liar import World

HOUR = 3600


def hide(world: World) -> None:
    for machine in world.machines.values():
        machine.listed_from = world.now.replace(year=2030)


def show(world: World) -> None:
    for machine in world.machines.values():
        machine.listed_from = None


def test_the_key_of_another_account_proves_no_end(machine, by_alice, driver, world, fresh, rented):
    operation = request_terminate(actor=by_alice, instance=machine, accept_loss=True)
    world.lies["ignored"] = 1
    driver.step()
    driver.wait(1)
    update_account(
        actor=by_alice,
        account=rented,
        name="Lab",
        values={"key": "sk-of-another"},
        monitor_only=False,
        poll_interval_seconds=60,
    )
    hide(world)
    driver.run(HOUR)
    assert (fresh(operation).state, fresh(operation).error_kind) == ("verifying", "doubted")
    assert fresh(machine).gone_at is None
    assert len(world.calls) == 1
    show(world)
    driver.run(HOUR)
    assert fresh(operation).state == "proved"


def test_a_list_that_is_doubted_proves_no_end(machine, by_alice, driver, world, fresh):
    operation = request_stop(actor=by_alice, instance=machine)
    driver.step()
    ProviderAccount.objects.update(doubted_since=driver.now)
    hide(world)
    driver.run(HOUR)
    assert (fresh(operation).state, fresh(operation).error_kind) == ("verifying", "doubted")
    ProviderAccount.objects.update(doubted_since=None)
    driver.run(HOUR)
    assert (fresh(operation).state, fresh(operation).proof) == ("proved", "gone")


def test_a_stop_that_was_proved_by_a_wrong_list_is_opened_again_however_long_it_was_wrong(
    machine, by_alice, driver, world, fresh
):
    world.lies["ignored"] = 1
    operation = request_stop(actor=by_alice, instance=machine)
    driver.step()
    hide(world)
    driver.run(120)
    assert (fresh(operation).state, fresh(operation).proof) == ("proved", "gone")
    driver.wait(HOUR)
    show(world)
    driver.poll()
    driver.run(HOUR)
    assert (fresh(operation).state, fresh(operation).proof) == ("proved", "state")
    assert [word for word, _ in world.calls] == ["stop", "stop"]


@pytest.mark.parametrize(("billing", "proof"), [(Billing.STORAGE, "state"), (Billing.UNKNOWN, "stopped")])
def test_a_stop_whose_cost_is_not_told_says_so(machine, by_alice, driver, fresh, monkeypatch, billing, proof):
    monkeypatch.setitem(liar.BILLING, InstanceState.STOPPED, billing)
    operation = request_stop(actor=by_alice, instance=machine)
    driver.run(60)
    assert (fresh(operation).state, fresh(operation).proof) == ("proved", proof)
