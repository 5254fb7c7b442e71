"""What must hold before an act is begun, and the intent that is written."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.inventory.accounts import delete_account
from fleet.inventory.machines import place_hold
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.closing import abandon_operation
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import (
    Gone,
    Held,
    KeyTaken,
    LosesData,
    MonitorOnly,
    NotAdmin,
    OperationOpen,
    Unmanaged,
    Unsupported,
)
from fleet.inventory.operations.requests import (
    request_launch,
    request_reboot,
    request_save_image,
    request_start,
    request_stop,
    request_terminate,
)
from fleet.providers.base import CreateSpec, InstanceState
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.operations.liar import Liar

SPEC = CreateSpec(name="train-02", offer_id="h100x8", max_price_per_hour=Decimal("30.50"))
OFFER = {"price_per_hour": "24.40", "currency": "USD"}


def test_an_intent_is_written_and_nothing_is_sent(machine, by_alice, world):
    operation = request_stop(actor=by_alice, instance=machine)
    assert (operation.state, operation.kind, operation.attempts) == ("requested", "stop", 0)
    assert operation.token.startswith("rr-")
    assert len(operation.token) == 19
    assert [event.kind for event in operation.events.all()] == ["requested"]
    assert AuditEntry.objects.filter(action="operation.requested", actor=by_alice.user).count() == 1
    assert world.calls == []


def test_asking_changes_nothing_that_is_shown(machine, by_alice, fresh):
    request_terminate(actor=by_alice, instance=machine, accept_loss=True)
    shown = fresh(machine)
    assert (shown.state, shown.billing, shown.gone_at) == ("running", "full", None)


def test_a_stop_that_is_not_proved_burns_money_by_the_price_at_the_request(machine, by_alice, driver):
    operation = request_stop(actor=by_alice, instance=machine)
    assert operation.burnt(driver.now + timedelta(hours=2)) == 5


def test_money_is_unknown_where_no_price_is(machine, by_alice, driver):
    Instance.objects.update(price_per_hour=None)
    assert request_stop(actor=by_alice, instance=machine).burnt(driver.now) is None


def test_an_account_for_looking_only_does_not_act(machine, by_alice, rented):
    ProviderAccount.objects.update(monitor_only=True)
    rented.refresh_from_db()
    with pytest.raises(MonitorOnly, match="Settings, Providers"):
        request_stop(actor=by_alice, instance=machine)
    with pytest.raises(MonitorOnly):
        request_launch(actor=by_alice, account=rented, spec=SPEC, offer=OFFER)


def test_what_nobody_registered_is_never_touched(machine, by_alice):
    Instance.objects.update(managed=False)
    with pytest.raises(Unmanaged, match="Register it first"):
        request_stop(actor=by_alice, instance=machine)


def test_a_machine_that_is_gone(machine, by_alice, driver):
    Instance.objects.update(gone_at=driver.now)
    with pytest.raises(Gone, match="no more"):
        request_terminate(actor=by_alice, instance=machine, accept_loss=True)


def test_a_disconnected_account(machine, by_alice, rented):
    delete_account(actor=by_alice, account=rented)
    with pytest.raises(Gone, match="disconnected"):
        request_stop(actor=by_alice, instance=machine)


def test_an_act_that_the_adapter_has_not_names_what_there_is(machine, by_alice, monkeypatch):
    monkeypatch.setattr(Liar, "capabilities", Liar.capabilities - {"stop", "reboot"})
    with pytest.raises(Unsupported, match="only terminate"):
        request_stop(actor=by_alice, instance=machine)
    with pytest.raises(Unsupported, match="console"):
        request_reboot(actor=by_alice, instance=machine)


def test_what_destroys_data_is_said_to_be_meant(machine, by_alice):
    with pytest.raises(LosesData, match="destroys data") as refusal:
        request_terminate(actor=by_alice, instance=machine)
    assert refusal.value.field == "accept_loss"
    assert request_terminate(actor=by_alice, instance=machine, accept_loss=True).is_open


def test_a_stop_that_keeps_the_disks_needs_no_such_word(machine, by_alice):
    assert request_stop(actor=by_alice, instance=machine).is_open


@pytest.fixture
def held(machine, bob, driver):
    place_hold(actor=Actor(bob, "bob", "page"), instance=machine, owner=bob, reason="evaluation", now=driver.now)
    return machine


def test_a_hold_keeps_the_machine_and_says_whose_it_is(held, by_alice):
    with pytest.raises(Held, match=r"bob \(evaluation\)"):
        request_stop(actor=by_alice, instance=held)
    assert not Operation.objects.exists()


def test_an_admin_overrides_a_hold_and_the_reason_is_kept(held, by_alice):
    operation = request_stop(actor=by_alice, instance=held, override_reason="budget is spent")
    assert operation.override_reason == "budget is spent"
    kept = AuditEntry.objects.get(action="operation.requested").new
    assert kept["override_reason"] == "budget is spent"


def test_an_operator_does_not(held, bob):
    with pytest.raises(NotAdmin):
        request_stop(actor=Actor(bob, "bob", "page"), instance=held, override_reason="mine")


def test_a_hold_keeps_nobody_from_starting_or_saving(held, by_alice):
    assert request_save_image(actor=by_alice, instance=held, name="before").is_open


def test_one_operation_at_a_time(machine, by_alice):
    first = request_stop(actor=by_alice, instance=machine)
    with pytest.raises(OperationOpen, match="still under way") as refusal:
        request_start(actor=by_alice, instance=machine)
    assert refusal.value.operation == first


@pytest.mark.parametrize("earlier", [request_start, request_reboot])
def test_nobody_waits_for_a_start_before_the_machine_can_be_stopped(machine, by_alice, fresh, earlier):
    begun = earlier(actor=by_alice, instance=machine)
    stop = request_stop(actor=by_alice, instance=machine)
    assert stop.is_open
    assert (fresh(begun).state, fresh(begun).error_kind) == ("failed", "superseded")


def test_a_termination_takes_the_place_of_a_stop_but_not_of_an_image(machine, by_alice, fresh):
    stop = request_stop(actor=by_alice, instance=machine)
    terminate = request_terminate(actor=by_alice, instance=machine, accept_loss=True)
    assert fresh(stop).error_kind == "superseded"
    abandon_operation(actor=by_alice, operation=terminate, reason="wrong machine")
    request_save_image(actor=by_alice, instance=machine, name="before")
    with pytest.raises(OperationOpen):
        request_terminate(actor=by_alice, instance=machine, accept_loss=True)


def test_the_same_key_begins_one_operation(machine, by_alice):
    first = request_stop(actor=by_alice, instance=machine, idempotency_key="k1")
    assert request_stop(actor=by_alice, instance=machine, idempotency_key="k1") == first
    with pytest.raises(KeyTaken):
        request_terminate(actor=by_alice, instance=machine, accept_loss=True, idempotency_key="k1")


def test_a_launch_keeps_what_was_ordered_and_what_it_may_cost(rented, by_alice, project):
    operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer=OFFER, project=project)
    kept = Operation.objects.get(pk=operation.pk)
    assert (kept.instance, kept.price_per_hour, kept.project) == (None, Decimal("24.40"), project)
    assert kept.spec["create"]["max_price_per_hour"] == "30.50"
    assert kept.machine_name == "train-02"


def test_an_offer_without_a_price_costs_what_nobody_knows(rented, by_alice):
    operation = request_launch(actor=by_alice, account=rented, spec=SPEC, offer={"price_per_hour": "much"})
    assert operation.price_per_hour is None


def test_what_is_abandoned_keeps_who_and_why(machine, by_alice, fresh):
    operation = request_stop(actor=by_alice, instance=machine)
    assert abandon_operation(actor=by_alice, operation=operation, reason="stopped in the console")
    assert (fresh(operation).state, fresh(operation).error_detail) == ("failed", "stopped in the console")
    assert AuditEntry.objects.get(action="operation.failed").actor == by_alice.user
    assert not abandon_operation(actor=by_alice, operation=operation, reason="again")


def test_a_machine_is_shown_as_the_provider_shows_it_whatever_was_abandoned(machine, by_alice, fresh):
    abandon_operation(actor=by_alice, operation=request_stop(actor=by_alice, instance=machine), reason="x")
    assert fresh(machine).state == InstanceState.RUNNING
