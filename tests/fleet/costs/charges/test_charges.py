"""Typed charges: an interval of the ledger each, ended or removed in sight of everybody, and never twice in one time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.core.exceptions import ValidationError

from fleet.costs.book.build import rebuild_ledger
from fleet.costs.book.models import LedgerChange, LedgerInterval, LedgerMeter
from fleet.costs.charges.charges import NewCharge, add_charge, end_charge, remove_charge
from fleet.costs.charges.models import TypedCharge
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.spend import spend
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def add(acme, account, bob):
    """add(unit="hour") adds a charge of acme as bob."""

    def make(*, instance=None, **fields):
        values = {
            "kind": "network_volume",
            "name": "vol-data",
            "unit": "gb_month",
            "price": Decimal("0.07"),
            "quantity": Decimal(500),
            "currency": "USD",
            "starts_at": NOVEMBER,
        }
        return add_charge(
            actor=Actor(bob, "bob", "page", "192.0.2.7"),
            team=acme,
            account=fields.pop("account", account),
            instance=instance,
            typed=NewCharge(**{**values, **fields}),
            now=NOW,
        )

    return make


def by(user):
    return Actor(user, user.username, "page", "192.0.2.7")


def spent(team, until=NOW):
    with time_machine.travel(until, tick=False):
        sum_costs(now=until)
        found = spend(team=team, start=NOVEMBER.date(), end=datetime(2026, 12, 1, tzinfo=UTC).date())
    return round(found.all.total, 6)


class TestMoney:
    @pytest.mark.parametrize(
        ("fields", "total"),
        [
            # 29.5 of the 30 days that November has.
            ({}, Decimal("0.07") * 500 * Decimal("29.5") / 30),
            ({"unit": "month", "kind": "licence", "quantity": Decimal(2), "price": Decimal(30)}, Decimal("59.0")),
            ({"unit": "hour", "kind": "address", "quantity": Decimal(1), "price": Decimal("0.005")}, Decimal("3.54")),
            ({"unit": "once", "kind": "egress", "quantity": Decimal(1), "price": Decimal("12.5")}, Decimal("12.5")),
            # 59 of 60 half days of the span over which it is spread.
            (
                {"unit": "once", "quantity": Decimal(1), "price": Decimal(60), "ends_at": NOVEMBER + 30 * DAY},
                Decimal(59),
            ),
        ],
    )
    def test_it_is_in_the_total(self, acme, add, fields, total):
        add(**fields)
        assert spent(acme) == round(total, 6)

    def test_an_ended_charge_is_charged_until_then(self, acme, add, bob):
        charge = add(unit="hour", quantity=Decimal(1), price=Decimal(1))
        assert spent(acme) == 708
        assert end_charge(actor=by(bob), charge=charge, ends_at=NOVEMBER + DAY, now=NOW)
        assert LedgerInterval.objects.get().period.upper == NOVEMBER + DAY
        assert spent(acme) == 24

    def test_a_removed_charge_counts_for_no_day_and_stays_on_record(self, acme, add, alice):
        charge = add(unit="hour", quantity=Decimal(1), price=Decimal(1))
        assert spent(acme) == 708
        assert remove_charge(actor=by(alice), charge=charge, reason="Typed twice", now=NOW)
        assert spent(acme) == 0
        charge.refresh_from_db()
        assert (charge.removed_reason, charge.removed_by, charge.removed_at) == ("Typed twice", alice, NOW)

    def test_a_rebuild_of_the_machine_leaves_it_alone(self, add, make_instance):
        machine = make_instance()
        add(instance=machine)
        assert list(rebuild_ledger(instances=[machine.pk])) == []
        assert LedgerInterval.objects.count() == 1


class TestTime:
    def test_a_new_price_is_a_new_charge_of_the_same_meter(self, add, bob):
        first = add()
        end_charge(actor=by(bob), charge=first, ends_at=NOVEMBER + DAY, now=NOW)
        add(starts_at=NOVEMBER + DAY, price=Decimal("0.08"))
        assert LedgerMeter.objects.count() == 1
        assert LedgerInterval.objects.count() == 2

    def test_two_of_one_name_at_a_time_are_refused(self, add):
        add()
        with pytest.raises(ValidationError) as refused:
            add(starts_at=NOVEMBER + 5 * DAY)
        assert set(refused.value.message_dict) == {"name"}
        assert TypedCharge.objects.count() == 1

    def test_of_another_kind_or_machine_they_are_not(self, add, make_instance):
        add()
        add(kind="licence", unit="month")
        add(instance=make_instance())
        assert LedgerMeter.objects.count() == 3

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"ends_at": NOVEMBER}, "ends_at"),
            ({"ends_at": NOVEMBER - DAY}, "ends_at"),
            ({"ends_at": NOW + 4000 * DAY}, "ends_at"),
            ({"starts_at": NOW - 800 * DAY}, "starts_at"),
            ({"starts_at": NOW + 4000 * DAY}, "starts_at"),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(self, add, fields, field):
        with pytest.raises(ValidationError) as refused:
            add(**fields)
        assert set(refused.value.message_dict) == {field}
        assert not TypedCharge.objects.exists()

    def test_an_end_before_the_beginning_is_refused(self, add, bob):
        charge = add()
        with pytest.raises(ValidationError):
            end_charge(actor=by(bob), charge=charge, ends_at=NOVEMBER, now=NOW)
        assert LedgerInterval.objects.get().period.upper is None

    def test_what_ended_is_not_ended_again(self, add, bob):
        charge = add()
        assert end_charge(actor=by(bob), charge=charge, ends_at=NOW, now=NOW)
        assert not end_charge(actor=by(bob), charge=charge, ends_at=NOVEMBER + DAY, now=NOW)
        assert LedgerInterval.objects.get().period.upper == NOW

    def test_what_was_removed_is_not_removed_or_ended_again(self, add, bob):
        charge = add()
        assert remove_charge(actor=by(bob), charge=charge, reason="x", now=NOW)
        assert not remove_charge(actor=by(bob), charge=charge, reason="y", now=NOW)
        assert not end_charge(actor=by(bob), charge=charge, ends_at=NOW, now=NOW)

    def test_a_reason_is_asked_for(self, add, bob):
        with pytest.raises(ValidationError):
            remove_charge(actor=by(bob), charge=add(), reason="", now=NOW)
        assert LedgerInterval.objects.exists()


class TestPlaces:
    def test_another_teams_account_is_refused(self, add, rival):
        theirs = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
        with pytest.raises(ValidationError) as refused:
            add(account=theirs)
        assert set(refused.value.message_dict) == {"account"}

    def test_a_machine_of_another_account_is_refused(self, add, acme, make_instance):
        other = ProviderAccount.objects.create(team=acme, kind="manual", name="Other")
        with pytest.raises(ValidationError) as refused:
            add(instance=make_instance(account=other))
        assert set(refused.value.message_dict) == {"instance"}


def test_every_write_is_on_record_and_told_to_whoever_sums(add, alice, bob):
    charge = add()
    end_charge(actor=by(bob), charge=charge, ends_at=NOW + DAY, now=NOW)
    remove_charge(actor=by(alice), charge=charge, reason="Typed twice", now=NOW)
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["charge.add", "charge.end", "charge.remove"]
    assert AuditEntry.objects.latest("pk").new == {"reason": "Typed twice"}
    changes = LedgerChange.objects.order_by("pk").values_list("from_at", flat=True)
    assert list(changes) == [NOVEMBER, NOW, NOVEMBER]
