"""A bill is taken once, whole, and nothing of an older one is overwritten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier

import pytest
from django.db import connections

from fleet.costs.bills.models import Bill, BillLine
from fleet.costs.bills.taking import Found, preview, take_bill
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import ChargeKind
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.costs.bills.conftest import DAY, DECEMBER, NOVEMBER, NOW, charge


def counting(account):
    rows = BillLine.objects.filter(account=account, superseded_by=None).order_by("key")
    return {row.key: row.amount for row in rows}


def test_lines_find_their_machines(pods, make_instance, take):
    machine = make_instance(name="pod-1", account=pods, external_id="pod-1")
    arn = "arn:aws:ec2:us-east-1:1:instance/pod-1"
    take([charge("pod-1", 1, 5), charge(arn, 2, 6), charge("elsewhere", 3, 7)])
    found = {row.starts_at.day: (row.instance_id, row.external_id) for row in BillLine.objects.all()}
    assert found == {1: (machine.pk, "pod-1"), 2: (machine.pk, "pod-1"), 3: (None, "elsewhere")}


def test_what_a_file_calls_a_resource_is_no_machine_unless_there_is_one(take):
    take([charge("vol-1", 1, 5, kind=ChargeKind.DISK)])
    row = BillLine.objects.get()
    assert (row.external_id, row.resource) == ("", "vol-1")


def test_the_same_bill_twice_is_taken_once(pods, take):
    first = take([charge("a", 1, 5), charge("a", 2, 5)])
    again = take([charge("a", 1, 5), charge("a", 2, 5)])
    assert (first.new, first.again, again.again, again.bill) == (2, False, True, first.bill)
    assert (Bill.objects.count(), BillLine.objects.count()) == (1, 2)


def test_a_line_that_says_something_new_supersedes_and_both_are_kept(pods, take):
    first = take([charge("a", 1, 5), charge("a", 2, 5)])
    second = take([charge("a", 1, 5), charge("a", 2, "7.5")])
    assert (second.new, second.changed, second.dropped, second.same) == (0, 1, 0, 1)
    assert counting(pods) == {"a:1:compute:": 5, "a:2:compute:": Decimal("7.5")}
    old = BillLine.objects.get(amount=5, starts_at=NOVEMBER + DAY)
    assert (old.bill, old.superseded_by) == (first.bill, second.bill)
    assert Bill.objects.get(pk=first.bill.pk).state == "current"


def test_a_whole_bill_drops_what_it_does_not_have_and_a_part_of_one_does_not(pods, take):
    take([charge("a", 1, 5), charge("b", 1, 6)])
    part = take([charge("c", 1, 7)], complete=False)
    assert (part.new, part.dropped) == (1, 0)
    whole = take([charge("a", 1, 5)])
    assert (whole.new, whole.dropped, whole.same) == (0, 2, 1)
    assert counting(pods) == {"a:1:compute:": 5}
    assert BillLine.objects.count() == 3
    assert Bill.objects.get(pk=part.bill.pk).state == "replaced"


def test_lines_of_other_months_are_left_alone(pods, take):
    take([charge("a", -5, 5)], start=NOVEMBER - 31 * DAY, end=NOVEMBER)
    assert take([charge("a", 1, 5)]).dropped == 0
    assert len(counting(pods)) == 2


def test_a_bill_that_was_replaced_can_be_taken_again(pods, take):
    take([charge("a", 1, 5)])
    take([charge("a", 1, 6)])
    third = take([charge("a", 1, 5)])
    assert (third.again, third.changed) == (False, 1)
    assert counting(pods) == {"a:1:compute:": 5}


def test_a_bill_without_lines_says_that_nothing_was_charged(pods, take):
    assert take([]).bill is not None
    assert counting(pods) == {}


def test_a_preview_tells_the_same_and_writes_nothing(pods, take):
    take([charge("a", 1, 5), charge("b", 1, 6), charge("d", 1, 1)])
    charges = (charge("a", 1, 5), charge("b", 1, 7), charge("c", 1, 8))
    seen = preview(account=pods, found=Found("csv", charges, NOVEMBER, DECEMBER))
    assert (seen.bill, seen.new, seen.changed, seen.dropped, seen.same) == (None, 1, 1, 1, 1)
    assert (Bill.objects.count(), BillLine.objects.count()) == (1, 3)


def test_amounts_keep_every_digit_and_credits_their_sign(pods, take):
    take([charge("", 1, "-0.000000000001", kind=ChargeKind.REFUND), charge("a", 1, "123456789.123456789012")])
    assert sorted(counting(pods).values()) == [Decimal("-0.000000000001"), Decimal("123456789.123456789012")]


def test_taking_leaves_a_line_in_the_audit_log(pods, alice, take):
    take([charge("a", 1, 5)], actor=Actor(alice, "alice", "page"))
    entry = AuditEntry.objects.get(action="bill.take")
    assert (entry.actor, entry.new["new"]) == (alice, 1)
    assert Bill.objects.get().imported_by == alice


@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_take_every_line_once(acme):
    account = ProviderAccount.objects.create(team=acme, kind="runpod", name="RunPod")
    charges = tuple(charge(f"m{number}", 1, number + 1) for number in range(40))

    together = Barrier(2)

    def one(complete):
        try:
            together.wait(timeout=30)
            found = Found("csv", charges, NOVEMBER, DECEMBER, complete=complete, digest=f"{complete}")
            return take_bill(actor=Actor.system("test"), account=account, found=found, now=NOW)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, [True, False]))
    assert sorted(result.new for result in results) == [0, 40]
    assert BillLine.objects.filter(superseded_by=None).count() == 40
