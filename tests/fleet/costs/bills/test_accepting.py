"""Counting as billed: rows beside what was counted, once, in the right day, and reversible."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from fleet.costs.bills.adjusting import (
    Correction,
    accept_explained,
    accept_lines,
    create_adjustment,
    reverse_adjustment,
)
from fleet.costs.bills.comparing import compare_month
from fleet.costs.bills.shown import reconciliation_of
from fleet.costs.book.models import LedgerChange
from fleet.costs.spend.models import Adjustment
from fleet.providers.base import ChargeKind
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.costs.bills.conftest import DAY, DECEMBER, HOUR, NOVEMBER, NOW, charge

MONTH = date(2026, 11, 1)


@pytest.fixture
def actor(bob):
    return Actor(bob, "bob", "page")


@pytest.fixture
def month(pods, make_instance, write, take):
    """A price that is another one on two days; tax; a machine that nobody explains; two hours that the next bill has."""
    priced = make_instance(name="priced", account=pods, external_id="priced")
    border = make_instance(name="border", account=pods, external_id="border")
    write(priced, "compute", NOVEMBER, NOVEMBER + 2 * DAY, 2)
    write(border, "compute", DECEMBER - 2 * HOUR, DECEMBER, 2)
    take(
        [
            charge("priced", 1, 60),
            charge("priced", 2, 60),
            charge("", 3, "4.56", kind=ChargeKind.TAX),
            charge("i-never-seen", 4, 20),
        ]
    )
    return compare_month(account=pods, month=MONTH, now=NOW)[0]


def test_all_that_is_explained_counts_as_billed_line_by_line(pods, month, actor, bob):
    made = accept_explained(actor=actor, reconciliation=month, now=NOW)
    assert sorted((one.at.date().isoformat(), one.amount, one.kind) for one in made) == [
        ("2026-11-01", 12, "correction"),
        ("2026-11-02", 12, "correction"),
        ("2026-11-03", Decimal("4.56"), "tax"),
    ]
    assert {one.created_by for one in made} == {bob}
    changes = set(LedgerChange.objects.values_list("account", "instance", "from_at"))
    assert changes == {(pods.pk, one.instance_id, one.at) for one in made}
    assert AuditEntry.objects.get(action="bill.accept").new["adjustments"] == 3


def test_both_sides_stay_visible_and_what_is_accepted_beside_them(pods, month, actor):
    accept_explained(actor=actor, reconciliation=month, now=NOW)
    found = reconciliation_of(pods, MONTH)
    assert found is not None
    (priced,) = (group for group in found.groups if group.instance and group.instance.name == "priced")
    assert (priced.counted, priced.billed, priced.accepted) == (Decimal(96), Decimal(120), Decimal(24))
    assert priced.open_lines == ()
    assert (found.accepted, found.left) == (Decimal("28.56"), Decimal(20))


def test_twice_is_once(month, actor):
    assert len(accept_explained(actor=actor, reconciliation=month, now=NOW)) == 3
    assert accept_explained(actor=actor, reconciliation=month, now=NOW) == []
    lines = list(month.lines.values_list("pk", flat=True))
    # Of all, only the unexplained one is still to be counted.
    assert [one.amount for one in accept_lines(actor=actor, reconciliation=month, lines=lines, now=NOW)] == [20]


def test_what_another_months_bill_has_is_never_corrected(month, actor):
    border = month.lines.get(instance__name="border")
    assert border.reasons[0]["kind"] == "border"
    assert accept_lines(actor=actor, reconciliation=month, lines=[border.pk], now=NOW) == []
    assert not Adjustment.objects.exists()


def test_a_line_that_was_compared_anew_is_refused(pods, month, actor):
    old = month.lines.values_list("pk", flat=True)[0]
    (again,) = compare_month(account=pods, month=MONTH, now=NOW)
    with pytest.raises(ValidationError, match="compared anew"):
        accept_lines(actor=actor, reconciliation=again, lines=[old], now=NOW)


def test_a_later_bill_leaves_only_the_rest_to_count(pods, month, take, actor):
    accept_explained(actor=actor, reconciliation=month, now=NOW)
    take([charge("priced", 1, 61)], complete=False)
    (again,) = compare_month(account=pods, month=MONTH, now=NOW)
    assert [one.amount for one in accept_explained(actor=actor, reconciliation=again, now=NOW)] == [1]


def test_a_bill_that_comes_to_match_takes_the_correction_back(pods, month, take, actor):
    accept_explained(actor=actor, reconciliation=month, now=NOW)
    take([charge("priced", 1, 48)], complete=False)
    (again,) = compare_month(account=pods, month=MONTH, now=NOW)
    assert [one.amount for one in accept_explained(actor=actor, reconciliation=again, now=NOW)] == [-12]
    (settled,) = compare_month(account=pods, month=MONTH, now=NOW)
    assert not settled.lines.filter(status="matched").exists()


def test_one_line_for_the_days_that_were_corrected_leaves_only_the_rest(pods, month, take, actor):
    """The invoice of the month comes after bills of its days, and has one sum for the machine."""
    accept_explained(actor=actor, reconciliation=month, now=NOW)
    take([charge("priced", 1, 121, days=30, kind=ChargeKind.OTHER, raw_kind="")])
    (again,) = compare_month(account=pods, month=MONTH, now=NOW)
    (line,) = again.lines.filter(instance__name="priced")
    made = accept_lines(actor=actor, reconciliation=again, lines=[line.pk], now=NOW)
    assert [one.amount for one in made] == [1]


def test_two_currencies_of_one_machine_and_day_are_corrected_apart(pods, make_instance, write, take, actor):
    """Counted in dollars, billed in yuan, and nobody told a rate."""
    machine = make_instance(name="yuan", account=pods, external_id="yuan")
    write(machine, "compute", NOVEMBER + 2 * DAY, NOVEMBER + 2 * DAY + HOUR, 10)
    take([charge("yuan", 3, 72, currency="CNY"), charge("yuan", 9, 1)])
    made = []
    for one in compare_month(account=pods, month=MONTH, now=NOW):
        lines = list(one.lines.filter(starts_at=NOVEMBER + 2 * DAY).values_list("pk", flat=True))
        made += accept_lines(actor=actor, reconciliation=one, lines=lines, now=NOW)
    assert {one.currency: one.amount for one in made} == {"CNY": Decimal(72), "USD": Decimal(-10)}


def test_what_neither_side_has_any_more_is_taken_back_by_itself(pods, month, take, actor):
    """The tax moves to another day: it counts once."""
    tax = next(one for one in accept_explained(actor=actor, reconciliation=month, now=NOW) if one.kind == "tax")
    take([charge("priced", 1, 60), charge("priced", 2, 60), charge("", 30, "4.56", kind=ChargeKind.TAX)])
    (again,) = compare_month(account=pods, month=MONTH, now=NOW)
    back = Adjustment.objects.get(reverses__isnull=False)
    assert (back.reverses, back.amount, back.at, back.created_by) == (tax, -tax.amount, tax.at, None)
    assert LedgerChange.objects.filter(instance=None, from_at=back.at).count() == 2
    assert [one.amount for one in accept_explained(actor=actor, reconciliation=again, now=NOW)] == [tax.amount]
    compare_month(account=pods, month=MONTH, now=NOW)
    assert Adjustment.objects.filter(reverses__isnull=False).count() == 1


def test_a_reversal_is_a_row_of_its_own_and_opens_the_line_again(pods, month, actor):
    made = accept_explained(actor=actor, reconciliation=month, now=NOW)
    tax = next(one for one in made if one.kind == "tax")
    back = reverse_adjustment(actor=actor, adjustment=tax, reason="", now=NOW)
    assert (back.amount, back.at, back.reverses, back.kind) == (-tax.amount, tax.at, tax, "tax")
    assert Adjustment.objects.filter(pk=tax.pk, amount=tax.amount).exists()
    assert [one.amount for one in accept_explained(actor=actor, reconciliation=month, now=NOW)] == [Decimal("4.56")]


def test_nothing_is_reversed_twice_nor_a_reversal(month, actor):
    made = accept_explained(actor=actor, reconciliation=month, now=NOW)[0]
    back = reverse_adjustment(actor=actor, adjustment=made, reason="typed wrong", now=NOW)
    assert back.reason == "typed wrong"
    for one in (made, back):
        with pytest.raises(ValidationError):
            reverse_adjustment(actor=actor, adjustment=one, reason="", now=NOW)


def correction(account, **more) -> Correction:
    given = {
        "instance": None,
        "at": NOVEMBER,
        "amount": Decimal(-5),
        "currency": "USD",
        "kind": "refund",
        "reason": "outage",
    }
    return Correction(account=account, **{**given, **more})


def test_a_refund_is_made_by_hand(pods, actor):
    made = create_adjustment(actor=actor, correction=correction(pods), now=NOW)
    assert (made.amount, made.kind, made.reason) == (Decimal(-5), "refund", "outage")
    assert LedgerChange.objects.get().from_at == NOVEMBER


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("amount", Decimal(0)),
        ("amount", Decimal("1e10")),
        ("amount", Decimal("1.00000000001")),
        ("at", NOW + DAY),
        ("at", NOW - 800 * DAY),
        ("kind", "gift"),
        ("currency", "usd"),
        ("reason", "  "),
    ],
)
def test_what_cannot_be_is_refused_by_name(pods, actor, field, value):
    with pytest.raises(ValidationError) as refusal:
        create_adjustment(actor=actor, correction=correction(pods, **{field: value}), now=NOW)
    assert set(refusal.value.message_dict) == {field}
    assert not Adjustment.objects.exists()


def test_a_machine_of_another_account_is_refused(pods, actor, make_instance):
    with pytest.raises(ValidationError, match="another account"):
        create_adjustment(actor=actor, correction=correction(pods, instance=make_instance()), now=NOW)
