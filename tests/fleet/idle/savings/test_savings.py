"""What a stop saved: from its proof until it runs again, a week at most, less what it goes on to cost, and never of an unknown price."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.idle.savings.booking import book_saving, grow_savings, take_back_saving
from fleet.idle.savings.reading import saved, savings_of
from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.inventory.models import Instance

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def machine(make_instance):
    return make_instance(
        state="stopped",
        billing="storage",
        price_per_hour="4",
        storage_price_per_hour="0.5",
        gpus=2,
        state_since=NOW,
    )


@pytest.fixture
def stop(acme, machine) -> IdleStop:
    return IdleStop.objects.create(
        team=acme, instance=machine, verb="stop", stage="stopped", since=NOW, ended_at=NOW, price_per_hour="4", ordered_at=NOW - HOUR
    )  # fmt: skip


@pytest.fixture
def book(machine, stop):
    def booked(**changes) -> IdleSaving:
        Instance.objects.filter(pk=machine.pk).update(**changes)
        machine.refresh_from_db()
        stop.refresh_from_db()
        return book_saving(instance=machine, stop=stop, since=NOW, now=NOW)

    return booked


def test_it_grows_until_the_machine_runs_again(book, acme, machine):
    saving = book()
    assert (saving.price_per_hour, saving.gpu_count, saving.currency) == (Decimal("3.5"), 2, "USD")
    grow_savings(now=NOW + 2 * HOUR)
    assert saved(acme, NOW - DAY, NOW + DAY) == {"USD": Decimal(7)}
    Instance.objects.update(state="running", billing="full", state_since=NOW + 3 * HOUR)
    assert grow_savings(now=NOW + 4 * HOUR) == 1
    assert grow_savings(now=NOW + 9 * HOUR) == 0
    saving.refresh_from_db()
    assert (saving.until, saving.amount) == (NOW + 3 * HOUR, Decimal("10.5"))


def test_it_is_of_the_hours_that_are_asked_for(book, acme):
    book()
    grow_savings(now=NOW + 10 * HOUR)
    assert saved(acme, NOW + HOUR, NOW + 3 * HOUR) == {"USD": Decimal(7)}
    assert saved(acme, NOW + DAY, NOW + 2 * DAY) == {}
    assert list(savings_of(acme, NOW, NOW + HOUR)) == list(IdleSaving.objects.all())


def test_it_grows_a_week_at_most(book, acme):
    saving = book()
    grow_savings(now=NOW + 30 * DAY)
    saving.refresh_from_db()
    assert (saving.until, saving.amount) == (NOW + 7 * DAY, Decimal("3.5") * 24 * 7)


def test_a_price_that_nobody_knows_saves_nothing(book, acme, stop):
    IdleStop.objects.update(price_per_hour=None)
    assert book(price_per_hour=None).price_per_hour is None
    grow_savings(now=NOW + DAY)
    assert saved(acme, NOW, NOW + DAY) == {}


def test_disks_that_cost_an_unknown_amount_leave_no_figure(book):
    assert book(storage_price_per_hour=None).price_per_hour is None


def test_what_was_terminated_saves_on_and_what_was_only_stopped_ends_when_it_is_gone(book, acme, stop):
    book()
    Instance.objects.update(gone_at=NOW + 2 * HOUR)
    grow_savings(now=NOW + 5 * HOUR)
    assert saved(acme, NOW, NOW + DAY) == {"USD": Decimal(7)}
    IdleSaving.objects.all().delete()
    IdleStop.objects.update(verb="terminate")
    stop.refresh_from_db()
    book()
    grow_savings(now=NOW + 5 * HOUR)
    assert saved(acme, NOW, NOW + DAY) == {"USD": Decimal(20)}, "and no disk is paid for"


def test_it_is_booked_once_at_the_providers_own_time(book):
    first = book(provider_stopped_at=NOW - timedelta(minutes=2))
    assert first.since == NOW - timedelta(minutes=2)
    assert book() == first
    assert IdleSaving.objects.count() == 1


def test_a_time_from_before_the_order_is_not_the_stops(book):
    assert book(provider_stopped_at=NOW - 5 * HOUR).since == NOW


def test_it_is_taken_back_with_its_proof(book, stop):
    book()
    assert take_back_saving(stop=stop)
    assert not IdleSaving.objects.exists()
    assert not take_back_saving(stop=stop)


def test_nobody_elses(book, rival):
    book()
    assert saved(rival, NOW - DAY, NOW + DAY) == {}
