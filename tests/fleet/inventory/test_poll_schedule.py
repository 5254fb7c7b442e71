"""When an account is polled: at its own interval, never twice at once, less often while it fails, again after a crash."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from fleet.inventory.accounts import manual_account, pause_account
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import backoff, claim, claim_due, poll_account
from fleet.inventory.tasks import poll as poll_task
from fleet.providers.errors import AuthFailed, RateLimited, Unavailable
from fleet.teams.audit import Actor
from tests.fleet.inventory.conftest import NOON

SECOND = timedelta(seconds=1)


@pytest.fixture
def due(lab):
    """The account, due at noon."""
    lab.next_poll_at = NOON
    lab.save()
    with time_machine.travel(NOON, tick=False):
        yield lab


def next_poll_after(account):
    account.refresh_from_db()
    return account.next_poll_at - NOON


def run(claimed):
    poll_task(claimed.account_id, claimed.started_at.isoformat())


def test_a_due_account_is_claimed_once(due):
    assert [taken.account_id for taken in claim_due(now=NOON)] == [due.pk]
    assert claim_due(now=NOON) == []


def test_of_two_beats_that_saw_it_due_one_gets_it(due):
    first = claim(account_id=due.pk, seen_next_poll_at=NOON, now=NOON)
    second = claim(account_id=due.pk, seen_next_poll_at=NOON, now=NOON)
    assert first is not None
    assert second is None


def test_polls_leave_a_worker_free(due, provider, listed, settings, monkeypatch):
    """Three accounts are due and two may be read at once: the longest due first, the third when one is done."""
    short, long = (
        ProviderAccount.objects.create(
            team=due.team, kind="scripted", name=f"{seconds} s late", next_poll_at=NOON - seconds * SECOND
        )
        for seconds in (1, 2)
    )
    first = claim_due(now=NOON, at_once=2)
    assert [taken.account_id for taken in first] == [long.pk, short.pk]
    assert claim_due(now=NOON, at_once=2) == []
    settings.POLLS_AT_ONCE = 2
    sent: list[int] = []
    monkeypatch.setattr("fleet.inventory.tasks.poll.apply_async", lambda args, **_: sent.append(args[0]))
    run(first[0])
    assert sent == [due.pk]


def test_before_its_time_it_is_left_alone(due):
    assert claim_due(now=NOON - SECOND) == []


def test_paused_and_typed_accounts_are_never_polled(due, alice, acme):
    manual_account(acme)
    pause_account(actor=Actor(alice, "alice", "page"), account=due, paused=True)
    assert claim_due(now=NOON + timedelta(days=1)) == []


def test_after_a_complete_listing_it_waits_its_own_interval_and_a_little(due):
    due.poll_interval_seconds = 300
    due.save()
    (taken,) = claim_due(now=NOON)
    run(taken)
    assert timedelta(seconds=300) <= next_poll_after(due) <= timedelta(seconds=330)
    assert due.poll_started_at is None


def test_the_same_message_twice_polls_once(due, provider, listed):
    (taken,) = claim_due(now=NOON)
    run(taken)
    provider.machines = [listed("i-1")]
    run(taken)
    assert not Instance.objects.exists()


def test_a_poll_that_died_midway_is_made_up_for(due, provider, listed):
    """Its worker was killed: nobody finished the claim, and it runs out."""
    (dead,) = claim_due(now=NOON)
    assert claim_due(now=dead.expires_at - SECOND) == []
    (taken,) = claim_due(now=dead.expires_at)
    provider.machines = [listed("i-1")]
    run(taken)
    assert Instance.objects.count() == 1


def test_a_poll_that_outlived_its_claim_writes_nothing(due, provider, listed):
    (slow,) = claim_due(now=NOON)
    due.refresh_from_db()
    claim_due(now=slow.expires_at)
    provider.machines = [listed("i-1")]
    outcome = poll_account(account=due, now=NOON)
    assert (outcome.changes, outcome.error) == (None, None)
    assert not Instance.objects.exists()


def test_a_failure_is_shown_and_waits_longer_each_time(due, provider):
    provider.error = Unavailable("502 from the provider")
    waits = []
    for _ in range(3):
        due.refresh_from_db()
        poll_account(account=due, now=NOON)
        waits.append(next_poll_after(due))
    assert (due.failures, due.error_kind, due.error_detail) == (3, "unavailable", "502 from the provider")
    assert waits[0] >= timedelta(minutes=2)
    assert waits[1] >= timedelta(minutes=4)
    assert waits[2] >= timedelta(minutes=8)


def test_success_forgives_the_failures(due, provider):
    provider.error = AuthFailed("revoked")
    poll_account(account=due, now=NOON)
    provider.error = None
    due.refresh_from_db()
    poll_account(account=due, now=NOON)
    due.refresh_from_db()
    assert (due.failures, due.error_kind, due.error_detail) == (0, "", "")


@pytest.mark.parametrize(
    ("interval", "failures", "error", "minutes"),
    [
        (60, 1, Unavailable(), 2),
        (60, 30, Unavailable(), 60),
        (7200, 5, Unavailable(), 120),
        (60, 1, RateLimited(retry_after=600), 10),
        (60, 6, RateLimited(retry_after=5), 60),
        (60, 1, RateLimited(), 2),
        (60, 1, RateLimited(retry_after=1e12), 1440),
    ],
)
def test_backoff(interval, failures, error, minutes):
    assert backoff(interval, failures, error) == timedelta(minutes=minutes)
