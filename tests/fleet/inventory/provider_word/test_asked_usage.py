"""Providers whose measurements need calls of their own are asked at their own interval, and those that charge for it less often."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import being_read, poll_account
from fleet.inventory.provider_word import tasks
from fleet.inventory.provider_word.models import ProviderReading, ProviderUsage
from fleet.inventory.provider_word.reading import (
    USAGE,
    claim_due_readings,
    claim_reading,
    ensure_readings,
    refresh_reading,
)
from fleet.providers.base import Capability, InstanceState
from fleet.providers.errors import RateLimited, Unavailable
from tests.fleet.inventory.conftest import NOON, SECRET


@pytest.fixture
def meter(provider, monkeypatch):
    """The scripted provider with metrics: `meter.told`, what it measured; `meter.asked`, of what; `meter.fails`, raised after it."""

    def metrics(self, refs):
        provider.asked.append(sorted(ref.external_id for ref in refs))
        yield from provider.told
        if provider.fails:
            raise provider.fails

    monkeypatch.setattr(provider, "metrics", metrics, raising=False)
    for name, value in (("told", []), ("asked", []), ("fails", None)):
        monkeypatch.setattr(provider, name, value, raising=False)
    monkeypatch.setattr(provider, "capabilities", provider.capabilities | {Capability.METRICS})
    with time_machine.travel(NOON, tick=False):
        yield provider


@pytest.fixture
def reading(meter, lab, listed):
    meter.machines = [listed("i-1"), listed("i-2"), listed("off", state=InstanceState.STOPPED, raw_state="off")]
    assert poll_account(account=lab, now=NOON).error is None
    ensure_readings()
    return ProviderReading.objects.select_related("account").get(account=lab)


def ask(reading, *, now=NOON) -> bool:
    reading.refresh_from_db()
    assert claim_reading(reading.pk, seen_next_at=reading.next_at, now=now)
    taken = ProviderReading.objects.select_related("account").get(pk=reading.pk)
    return refresh_reading(reading=taken, now=now)


def test_machines_that_run_are_asked_for_and_strangers_are_dropped(reading, meter, measured):
    meter.told = [measured(cpu_percent=7.0), measured("of-nobody", cpu_percent=9.0)]
    assert ask(reading)
    assert meter.asked == [["i-1", "i-2"]]
    row = ProviderUsage.objects.get()
    assert (row.instance, row.cpu_percent, row.source) == (Instance.objects.get(external_id="i-1"), 7.0, "provider")


def test_the_next_time_is_an_interval_away(reading):
    assert ask(reading)
    reading.refresh_from_db()
    assert timedelta(minutes=5) <= reading.next_at - NOON <= timedelta(minutes=5.5)
    assert USAGE.interval_of("aws") == 900


def test_a_cut_answer_keeps_nothing_and_waits_longer(reading, meter, measured):
    meter.told, meter.fails = [measured(cpu_percent=7.0)], Unavailable(f"cut after {SECRET}")
    assert not ask(reading)
    reading.refresh_from_db()
    assert not ProviderUsage.objects.exists()
    assert (reading.failures, reading.error_kind) == (1, Unavailable.kind)
    assert SECRET not in reading.error_detail
    assert reading.next_at >= NOON + timedelta(minutes=10)
    meter.fails = RateLimited("slow down", retry_after=7_200)
    assert not ask(reading)
    reading.refresh_from_db()
    assert reading.next_at >= NOON + timedelta(hours=2)
    meter.fails = None
    assert ask(reading)
    reading.refresh_from_db()
    assert (reading.failures, reading.error_detail) == (0, "")


def test_only_one_of_two_asks_and_who_comes_late_writes_nothing(reading, meter, measured):
    meter.told = [measured(cpu_percent=7.0)]
    due = reading.next_at
    assert claim_reading(reading.pk, seen_next_at=due, now=NOON)
    assert claim_reading(reading.pk, seen_next_at=due, now=NOON) is None
    late = ProviderReading.objects.select_related("account").get(pk=reading.pk)
    later = NOON + timedelta(hours=1)
    assert claim_reading(reading.pk, seen_next_at=late.next_at, now=later)
    assert not refresh_reading(reading=late, now=NOON)
    assert not ProviderUsage.objects.exists()


def test_the_task_asks_who_is_due_once(reading, meter, monkeypatch):
    sent = []
    monkeypatch.setattr(tasks.read_word, "apply_async", lambda args, **_options: sent.append(args))
    assert tasks.dispatch_readings() == 1
    assert being_read(now=NOON) == 1
    tasks.read_word(*sent[0])
    tasks.read_word(*sent[0])
    assert len(meter.asked) == 1
    assert tasks.dispatch_readings() == 0


@pytest.mark.parametrize(
    "change", [{"enabled": False}, {"failures": 1}, {"disconnected_at": NOON}, {"listed_at": None}]
)
def test_accounts_that_cannot_be_read_are_left_alone(reading, change):
    ProviderAccount.objects.update(**change)
    assert claim_due_readings(now=NOON, at_once=9) == []


def test_there_is_no_place_beyond_those_for_all_readings(reading):
    assert claim_due_readings(now=NOON, at_once=0) == []


def test_providers_without_such_calls_are_not_asked(provider, lab):
    assert ensure_readings() == 0
