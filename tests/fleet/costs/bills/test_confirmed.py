"""How much of a month's spend bills bear out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.bills.adjusting import accept_lines
from fleet.costs.bills.comparing import compare_month
from fleet.costs.bills.shown import confirmed_by_bills
from fleet.costs.bills.taking import Found, take_bill
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor
from tests.fleet.costs.bills.conftest import DAY, NOVEMBER, NOW, charge
from tests.fleet.costs.seeding import spend_on

START, END = date(2026, 11, 1), date(2026, 12, 1)


@pytest.fixture
def month(acme, pods, account, make_instance, write, take):
    """RunPod: $100, of which the bill bears out 60; another account without a bill: $100."""
    machine = make_instance(name="pod", account=pods, external_id="pod")
    write(machine, "compute", NOVEMBER, NOVEMBER + DAY, "2.5")
    write(machine, "compute", NOVEMBER + DAY, NOVEMBER + 2 * DAY, "1.6666666667")
    take([charge("pod", 1, 60), charge("pod", 2, 80)])
    (made,) = compare_month(account=pods, month=START, now=NOW)
    spend_on(acme, START, 100, instance=machine)
    spend_on(acme, START, 100, instance=make_instance(name="elsewhere", account=account))
    return made


def test_matched_lines_are_confirmed(acme, month, pods):
    found = confirmed_by_bills(team=acme, start=START, end=END)
    assert [(one.account, one.source) for one in found.accounts] == [(pods, "api")]
    # 60 of the 140 that were billed, of half of the spend.
    assert found.share is not None
    assert round(found.share, 4) == round(Decimal(60) / 140 / 2, 4)


def test_what_was_counted_as_billed_is_confirmed_too(acme, month, bob):
    accept_lines(
        actor=Actor(bob, "bob", "page"), reconciliation=month, lines=month.lines.values_list("pk", flat=True), now=NOW
    )
    found = confirmed_by_bills(team=acme, start=START, end=END)
    assert found.share is not None
    assert round(found.share, 4) == Decimal("0.5")


def test_without_bills_nothing_is_confirmed_and_without_spend_nothing_is_known(acme, rival, account, make_instance):
    assert confirmed_by_bills(team=rival, start=START, end=END).share is None
    spend_on(acme, START, 100, instance=make_instance(account=account))
    found = confirmed_by_bills(team=acme, start=START, end=END)
    assert (found.accounts, found.share) == ((), Decimal(0))


def test_the_page_of_costs_says_it_of_the_whole_month(vera, as_user, month):
    page = "/t/acme/costs/?month=2026-11"
    words = "Bills bear out 21% of it (RunPod)."
    assert words in as_user(vera).get(page).content.decode()
    assert words not in as_user(vera).get(f"{page}&meter=compute").content.decode()


def test_it_asks_as_often_whatever_the_number_of_accounts(acme, month, bob):
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            confirmed_by_bills(team=acme, start=START, end=END)
        return len(queries)

    accept_lines(
        actor=Actor(bob, "bob", "page"), reconciliation=month, lines=month.lines.values_list("pk", flat=True), now=NOW
    )
    few = count()
    for number in range(4):
        account = ProviderAccount.objects.create(team=acme, kind="vast", name=f"Vast {number}", currency="USD")
        bill = Found("api", (charge("pod", 1, 9),), NOVEMBER, NOVEMBER + DAY)
        take_bill(actor=Actor.system("bills"), account=account, found=bill, now=NOW)
        compare_month(account=account, month=START, now=NOW)
    assert len(confirmed_by_bills(team=acme, start=START, end=END).accounts) == 5
    assert count() == few
