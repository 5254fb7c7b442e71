"""What a stop saved: from its proof until the machine runs again, no hour twice, and nothing where a price is not known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.idle.savings.booking import GROWS_FOR, book_saving, grow_savings
from fleet.idle.savings.reading import saved
from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.plans.models import PlannedAction

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def machine(make_instance):
    return make_instance(
        state="stopped", billing="storage", state_since=NOW, price_per_hour=Decimal("8.00"),
        storage_price_per_hour=Decimal("0.50"), currency="USD",
    )  # fmt: skip


@pytest.fixture
def stop_of():
    def write(machine: Instance, at: datetime, price: str | None = "8.00", verb: str = "stop") -> IdleStop:
        return IdleStop.objects.create(
            team=machine.team, instance=machine, policy_name="Lab", verb=verb, stage="stopped", since=at, ended_at=at,
            quiet_since=at - HOUR, began_at=at - HOUR / 2, price_per_hour=None if price is None else Decimal(price),
        )  # fmt: skip

    return write


@pytest.fixture
def saving(machine, stop_of):
    return book_saving(instance=machine, stop=stop_of(machine, NOW), since=NOW, now=NOW)


def change(machine: Instance, **fields: object) -> None:
    Instance.objects.filter(pk=machine.pk).update(**fields)
    machine.refresh_from_db()


def test_the_price_less_the_disks_for_each_hour(saving, acme):
    grow_savings(now=NOW + 2 * HOUR)
    saving.refresh_from_db()
    assert (saving.amount, saving.until) == (Decimal("15.00"), None)
    assert saved(acme, NOW + HOUR, NOW + 5 * HOUR) == {"USD": Decimal("7.50")}


def test_it_ends_when_the_machine_runs_again(saving, machine):
    change(machine, state="running", billing="full", state_since=NOW + 3 * HOUR)
    assert grow_savings(now=NOW + 4 * HOUR) == 1
    assert grow_savings(now=NOW + 9 * HOUR) == 0
    saving.refresh_from_db()
    assert (saving.until, saving.amount) == (NOW + 3 * HOUR, Decimal("22.50"))


def test_one_that_is_off_and_billed_in_full_saves_nothing_more(saving, machine):
    change(machine, billing="full")
    assert grow_savings(now=NOW + HOUR) == 1


def test_it_grows_for_a_week_at_most(saving):
    grow_savings(now=NOW + timedelta(days=30))
    saving.refresh_from_db()
    assert saving.until == NOW + GROWS_FOR


def test_a_price_that_changes_later_changes_nothing(saving, machine):
    change(machine, price_per_hour=Decimal("99.00"))
    grow_savings(now=NOW + 2 * HOUR)
    saving.refresh_from_db()
    assert saving.amount == Decimal("15.00")


@pytest.mark.parametrize(("verb", "until"), [("stop", NOW + HOUR), ("terminate", None)])
def test_what_was_only_stopped_saves_nothing_once_it_is_gone(machine, stop_of, verb, until):
    saving = book_saving(instance=machine, stop=stop_of(machine, NOW, verb=verb), since=NOW, now=NOW)
    change(machine, gone_at=NOW + HOUR)
    grow_savings(now=NOW + 2 * HOUR)
    saving.refresh_from_db()
    assert saving.until == until


@pytest.mark.parametrize("fields", [{"storage_price_per_hour": None}, {}])
def test_what_nobody_knows_the_price_of_counts_nothing(machine, stop_of, fields):
    change(machine, **fields)
    stop = stop_of(machine, NOW, price="8.00" if fields else None)
    saving = book_saving(instance=machine, stop=stop, since=NOW, now=NOW + HOUR)
    assert saving.price_per_hour is None
    assert saving.amount == 0


def test_it_is_booked_once(machine, stop_of):
    stop = stop_of(machine, NOW)
    first = book_saving(instance=machine, stop=stop, since=NOW, now=NOW)
    assert book_saving(instance=machine, stop=stop, since=NOW + HOUR, now=NOW + HOUR) == first


@pytest.mark.parametrize(("started_at", "until"), [(NOW + 2 * HOUR, NOW + 2 * HOUR), (None, NOW + 4 * HOUR)])
def test_no_hour_is_saved_twice_though_nobody_saw_it_run_between_two_stops(
    saving, machine, stop_of, acme, started_at, until
):
    """Stopped at 8, up at 10 or nobody knows when, quiet from 12 on, stopped again at 13."""
    change(machine, started_at=started_at)
    again = NOW + 5 * HOUR
    book_saving(instance=machine, stop=stop_of(machine, again), since=again, now=again)
    grow_savings(now=again + HOUR)
    saving.refresh_from_db()
    assert saving.until == until
    assert saved(acme, NOW, again + HOUR) == {"USD": Decimal("7.50") * (int((until - NOW) / HOUR) + 1)}


def test_deleting_what_was_stopped_saves_its_disks_alone(saving, machine, account, acme):
    at = NOW + 10 * HOUR
    operation = Operation.objects.create(
        team=acme, account=account, instance=machine, kind="terminate", state="proved", token="t", requested_at=at,
        price_per_hour=Decimal("0.50"),
    )  # fmt: skip
    change(machine, gone_at=at, state="terminated", billing="none")
    action = PlannedAction.objects.create(
        team=acme, instance=machine, verb="terminate", due_at=at, source="delete", reason="", operation=operation
    )
    book_saving(
        instance=machine, action=action, since=at, now=at, price_per_hour=operation.price_per_hour, currency="USD"
    )
    grow_savings(now=at + HOUR)
    assert IdleSaving.objects.get(planned_action=action).amount == Decimal("0.50")
    assert saved(acme, NOW, at + HOUR) == {"USD": Decimal("75.50")}
