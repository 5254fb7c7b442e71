"""Providers are asked for their bills: which days, how often, and what becomes of the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.costs.bills import asking
from fleet.costs.bills.asking import NAME, window_of
from fleet.costs.bills.models import Bill, BillLine, BillState, Reconciliation
from fleet.costs.bills.tasks import compare_bills, compare_recent_bills
from fleet.inventory.provider_word import reading
from fleet.inventory.provider_word.models import ProviderReading
from fleet.inventory.provider_word.reading import claim_due_readings, ensure_readings, refresh_reading
from fleet.providers.base import Capability
from fleet.providers.errors import AuthFailed
from tests.fleet.costs.bills.conftest import DAY, HOUR, NOVEMBER, charge

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Billing:
    """Charges a dollar a day for one machine; `amount` is what it says today."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime]] = []
        self.amount = 1
        self.error: Exception | None = None

    def charges(self, start, end):
        self.asked.append((start, end))
        if self.error:
            raise self.error
        day = start
        while day < end:
            yield charge("pod-1", 1, self.amount, start=day, line_id=f"pod-1:{day:%m-%d}")
            day += DAY


@pytest.fixture
def provider(monkeypatch, pods):
    pods.listed_at = NOW - HOUR
    pods.save()
    billing = Billing()
    monkeypatch.setattr(reading, "open_adapter", lambda account: billing)
    return billing


def ask(now=NOW):
    """Everything that is due, as the worker does it."""
    with time_machine.travel(now, tick=False):
        ensure_readings()
        for claim in claim_due_readings(now=now, at_once=5):
            row = ProviderReading.objects.select_related("account").get(pk=claim.reading_id)
            refresh_reading(reading=row, now=now)


def test_every_account_with_bills_is_asked(provider, pods, account):
    ask()
    assert ProviderReading.objects.filter(subject=NAME).get().account == pods
    assert provider.asked == [(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 15, tzinfo=UTC))]


def test_the_past_is_read_in_steps_and_then_the_last_days_once_a_day(provider, pods):
    for step in range(6):
        ask(NOW + step * timedelta(minutes=2))
    assert [end.day for _, end in provider.asked] == [15, 25, 4, 14, 20]
    assert {end for start, end in provider.asked if end > NOW} == set()
    ask(NOW + timedelta(days=2))
    assert provider.asked[-1] == (NOVEMBER + 15 * DAY, NOVEMBER + 21 * DAY)
    days = BillLine.objects.filter(superseded_by=None).count()
    assert days == 31 + 21
    assert BillLine.objects.count() == days


def test_days_that_an_invoice_has_in_one_line_are_not_counted_beside_it(provider, pods, take):
    for step in range(6):
        ask(NOW + step * timedelta(minutes=2))
    take([charge("pod-1", 1, 25, days=25), charge("pod-2", 1, 9, days=25)], source="csv")
    assert BillLine.objects.filter(superseded_by=None, starts_at__gte=NOVEMBER).count() == 2
    ask(NOW + 7 * DAY)
    days = BillLine.objects.filter(superseded_by=None, bill__source="api", starts_at__gte=NOVEMBER)
    assert [line.starts_at.day for line in days] == [26]


def test_what_the_provider_corrects_supersedes(provider, pods):
    for step in range(6):
        ask(NOW + step * timedelta(minutes=2))
    provider.amount = 2
    ask(NOW + timedelta(days=2))
    changed = BillLine.objects.filter(superseded_by=None, amount=2)
    assert changed.count() == 6
    assert BillLine.objects.exclude(superseded_by=None).count() == 4
    assert set(Bill.objects.values_list("source", flat=True)) == {"api"}
    assert BillState.CURRENT in set(Bill.objects.values_list("state", flat=True))


def test_a_refusal_leaves_everything_as_it_was_and_is_tried_later(provider, pods):
    provider.error = AuthFailed("no")
    ask()
    row = ProviderReading.objects.get(subject=NAME)
    assert (row.failures, row.error_kind, row.next_at > NOW) == (1, AuthFailed("no").kind, True)
    assert not Bill.objects.exists()


def test_a_bill_without_end_is_refused(provider, monkeypatch):
    monkeypatch.setattr(asking, "MOST_CHARGES", 3)
    ask()
    assert ProviderReading.objects.get(subject=NAME).failures == 1
    assert not BillLine.objects.exists()


def test_a_bill_that_takes_too_long_is_given_up(provider, settings):
    settings.POLL_TIMEOUT_SECONDS = -1
    ask()
    assert ProviderReading.objects.get(subject=NAME).failures == 1


def test_the_first_window_on_the_first_of_a_month(pods):
    first = datetime(2026, 3, 1, 0, 30, tzinfo=UTC)
    assert window_of(pods, first) == (datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 15, tzinfo=UTC))


def test_months_are_compared_by_their_task(provider, pods):
    for step in range(6):
        ask(NOW + step * timedelta(minutes=2))
    with time_machine.travel(NOW + DAY, tick=False):
        assert compare_bills(pods.pk, "2026-11-01") == 1
        assert compare_bills(999_999, "2026-11-01") == 0
    made = Reconciliation.objects.get()
    assert (made.billed, made.counted) == (Decimal(19), Decimal(0))


def test_recent_months_are_compared_again(pods, monkeypatch):
    zeros = dict.fromkeys(("counted", "billed", "explained", "left", "matched", "matched_lines"), 0)
    for month in ("2026-11-01", "2025-11-01"):
        Reconciliation.objects.create(account=pods, month=month, currency="USD", made_at=NOW, **zeros)
    sent = []
    monkeypatch.setattr(compare_bills, "delay", lambda *arguments: sent.append(arguments))
    with time_machine.travel(NOW, tick=False):
        assert compare_recent_bills() == 1
    assert sent == [(pods.pk, "2026-11-01")]


def test_the_providers_that_have_bills_say_so():
    from fleet.providers.registry import kinds_with

    assert set(kinds_with(Capability.COSTS)) == {"runpod", "vast", "digitalocean"}
