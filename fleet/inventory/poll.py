"""Reads accounts at their own interval. A listing is complete or it fails whole; a failing account is asked less and less often.

    due ──claim──► reading ──complete──► written, next in one interval
                      ├──────failed────► error shown, next after a back-off
                      └── worker died ─► the claim runs out, and the account is due again

A claim is `poll_started_at`: set by compare-and-set, so two beats or workers never poll one account twice, and looked at
again before anything is written, so a poll that outlived its claim writes nothing.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from fleet.inventory.adapters import can, open_adapter
from fleet.inventory.doubt import ask_for_doubted
from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.listing import read_listing
from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers.models import OfferSource
from fleet.inventory.provider_word.models import ProviderReading
from fleet.inventory.reconcile import Changes, apply_listing
from fleet.meters import meters
from fleet.providers.base import Capability
from fleet.providers.errors import Invalid, ProviderError, RateLimited
from fleet.providers.registry import kinds_with

MAX_BACKOFF = timedelta(hours=1)
MAX_RETRY_AFTER = timedelta(days=1)
JITTER = 0.1
# After the time-out of a listing there is still the transaction that writes it.
WRITE_ALLOWANCE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to poll one account, until `expires_at`."""

    account_id: int
    started_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PollOutcome:
    """changes: what a complete listing changed. error: why there is none. Both None: the poll had lost its claim."""

    changes: Changes | None = None
    error: ProviderError | None = None


def claim_due(*, now: datetime, at_once: int | None = None) -> list[Claim]:
    """Claims the accounts whose time has come, the longest due first; with those that are being read, at most `at_once`."""
    due = ProviderAccount.objects.filter(
        enabled=True, disconnected_at=None, kind__in=kinds_with(Capability.LIST), next_poll_at__lte=now
    ).order_by("next_poll_at")
    free = None if at_once is None else max(0, at_once - being_read(now=now))
    claims = [
        claim(account_id=pk, seen_next_poll_at=next_poll_at, now=now)
        for pk, next_poll_at in due.values_list("pk", "next_poll_at")[:free]
    ]
    return [taken for taken in claims if taken is not None]


def being_read(*, now: datetime) -> int:
    """How many readings, of listings, of offers and of the provider's other words, hold a claim that has not run out: they share the workers."""
    listings = ProviderAccount.objects.filter(poll_started_at__isnull=False, next_poll_at__gt=now)
    offers = OfferSource.objects.filter(claimed_at__isnull=False, next_at__gt=now)
    words = ProviderReading.objects.filter(claimed_at__isnull=False, next_at__gt=now)
    return listings.count() + offers.count() + words.count()


def claim(*, account_id: int, seen_next_poll_at: datetime, now: datetime) -> Claim | None:
    """None: somebody else was quicker."""
    expires_at = now + timedelta(seconds=settings.POLL_TIMEOUT_SECONDS) + WRITE_ALLOWANCE
    taken = ProviderAccount.objects.filter(
        pk=account_id, next_poll_at=seen_next_poll_at, enabled=True, disconnected_at=None
    ).update(poll_started_at=now, next_poll_at=expires_at)
    return Claim(account_id, now, expires_at) if taken else None


def poll_account(*, account: ProviderAccount, now: datetime) -> PollOutcome:
    """Reads the account and writes what it found, under the claim that `account` was loaded with. `now` is when it began."""
    if not can(account, Capability.LIST):
        return PollOutcome(error=Invalid("This provider has no list to read."))
    deadline = time.monotonic() + settings.POLL_TIMEOUT_SECONDS
    try:
        adapter = open_adapter(account)
        listing = read_listing(adapter, timeout_seconds=settings.POLL_TIMEOUT_SECONDS)
        changes = apply_listing(account=account, listing=listing, rule_version=adapter.rule_version, now=now)
    except Exception as error:  # noqa: BLE001 - an adapter with a bug must back off like any other; the bug is logged
        provider_error = as_provider_error(error, account)
        meters.count("provider_polls", provider=account.kind, result=provider_error.kind)
        return failed(account, provider_error, now=now)
    meters.count("provider_polls", provider=account.kind, result="overtaken" if changes is None else "ok")
    if changes is not None:
        ask_for_doubted(account=account, adapter=adapter, deadline=deadline)
        finish(account, now=now)
    return PollOutcome(changes=changes)


def finish(account: ProviderAccount, *, now: datetime) -> None:
    ProviderAccount.objects.filter(pk=account.pk, poll_started_at=account.poll_started_at).update(
        poll_started_at=None,
        listed_at=now,
        failures=0,
        error_kind="",
        error_detail="",
        next_poll_at=later(now, timedelta(seconds=account.poll_interval_seconds)),
    )


def failed(account: ProviderAccount, error: ProviderError, *, now: datetime) -> PollOutcome:
    failures = account.failures + 1
    ProviderAccount.objects.filter(pk=account.pk, poll_started_at=account.poll_started_at).update(
        poll_started_at=None,
        failures=failures,
        failed_at=now,
        error_kind=error.kind,
        error_detail=shown_text(account, error),
        next_poll_at=later(now, backoff(account.poll_interval_seconds, failures, error)),
    )
    return PollOutcome(error=error)


def backoff(interval_seconds: int, failures: int, error: ProviderError) -> timedelta:
    """Doubles with every failure, up to an hour (or the interval, where that is longer); never sooner than the provider asked."""
    interval = timedelta(seconds=interval_seconds)
    doubled: timedelta = min(interval * 2 ** min(failures, 12), max(MAX_BACKOFF, interval))
    if isinstance(error, RateLimited) and error.retry_after is not None:
        return max(doubled, min(timedelta(seconds=max(error.retry_after, 0)), MAX_RETRY_AFTER))
    return doubled


def later(now: datetime, delay: timedelta) -> datetime:
    """With jitter, always to the later side: accounts that were added together must not be polled together for ever."""
    return max(now, timezone.now()) + delay * random.uniform(1, 1 + JITTER)  # noqa: S311 - not for secrets
