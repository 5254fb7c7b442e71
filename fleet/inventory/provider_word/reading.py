"""Asks accounts for what their lists do not carry, each question at its own interval.

As with offers, a claim is taken by compare-and-set and looked at again before anything is written; an account that fails is asked less
and less often, and holds up no other: each reading is a task of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from django.conf import settings
from django.db import transaction
from django.db.models import F

from fleet.inventory.adapters import open_adapter
from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.listing import MAX_MACHINES, bounded
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import WRITE_ALLOWANCE, backoff, being_read, later
from fleet.inventory.provider_word.keeping import keep_usage, usage_key
from fleet.inventory.provider_word.models import ProviderReading
from fleet.inventory.provider_word.notices import keep_notices
from fleet.meters import meters
from fleet.providers import base
from fleet.providers.base import Capability, InstanceState, Provider, Ref, TellsMetrics, TellsNotices
from fleet.providers.errors import ProviderError
from fleet.providers.registry import kinds_with

Keys = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Subject:
    """read(account, adapter, machines, deadline) asks, outside of any transaction; keep(account, machines, told, now) writes."""

    name: str
    capability: Capability
    interval_seconds: int
    read: Callable[[ProviderAccount, Provider, Keys, float], list[Any]]
    keep: Callable[[ProviderAccount, Keys, list[Any], datetime], object]
    # Providers that charge for each answer are asked less often.
    intervals: Mapping[str, int] = field(default_factory=dict)

    def interval_of(self, kind: str) -> int:
        return self.intervals.get(kind, self.interval_seconds)


def read_usage(
    _account: ProviderAccount, adapter: Provider, machines: Keys, deadline: float
) -> list[base.ProviderUsage]:
    refs = [Ref(external_id, region) for region, external_id in machines]
    return list(bounded(cast(TellsMetrics, adapter).metrics(refs), MAX_MACHINES, deadline)) if refs else []


def keep_read_usage(_account: ProviderAccount, machines: Keys, told: list[base.ProviderUsage], now: datetime) -> int:
    pairs = ((machines.get(usage_key(usage.ref)), usage) for usage in told)
    return keep_usage([(pk, usage) for pk, usage in pairs if pk is not None], now=now)


def read_notices(_account: ProviderAccount, adapter: Provider, _machines: Keys, deadline: float) -> list[base.Notice]:
    return list(bounded(cast(TellsNotices, adapter).notices(), MAX_MACHINES, deadline))


def keep_read_notices(account: ProviderAccount, _machines: Keys, told: list[base.Notice], now: datetime) -> int:
    return keep_notices(account=account, told=told, now=now)


USAGE = Subject("usage", Capability.METRICS, 300, read_usage, keep_read_usage, {"aws": 900})
# Spot capacity goes two minutes after it was announced.
NOTICES = Subject("notices", Capability.NOTICES, 120, read_notices, keep_read_notices)
# Rooms above add theirs when the app is ready.
SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in (USAGE, NOTICES)}


@dataclass(frozen=True, slots=True)
class ReadingClaim:
    """The right to ask one question, until `expires_at`."""

    reading_id: int
    claimed_at: datetime
    expires_at: datetime


def ensure_readings() -> int:
    """A row for every question that an account's provider can answer and that has none yet."""
    missing = [
        ProviderReading(account_id=pk, subject=subject.name)
        for subject in SUBJECTS.values()
        for pk in ProviderAccount.objects.filter(kind__in=kinds_with(subject.capability), disconnected_at=None)
        .exclude(readings__subject=subject.name)
        .values_list("pk", flat=True)
    ]
    return len(ProviderReading.objects.bulk_create(missing, ignore_conflicts=True))


def claim_due_readings(*, now: datetime, at_once: int) -> list[ReadingClaim]:
    """The longest due first; with everything else that is being read of providers, at most `at_once`.

    Whose machines could not be listed waits: an account that hangs must not hold two places.
    """
    due = ProviderReading.objects.filter(
        subject__in=SUBJECTS,
        next_at__lte=now,
        account__enabled=True,
        account__disconnected_at=None,
        account__failures=0,
        account__listed_at__isnull=False,
    )
    free = max(0, at_once - being_read(now=now))
    rows = due.order_by("next_at").values_list("pk", "next_at")[:free]
    claims = [claim_reading(pk, seen_next_at=next_at, now=now) for pk, next_at in rows]
    return [taken for taken in claims if taken is not None]


def claim_reading(reading_id: int, *, seen_next_at: datetime, now: datetime) -> ReadingClaim | None:
    """None: somebody else was quicker."""
    expires_at = now + timedelta(seconds=settings.POLL_TIMEOUT_SECONDS) + WRITE_ALLOWANCE
    mine = ProviderReading.objects.filter(pk=reading_id, next_at=seen_next_at)
    return ReadingClaim(reading_id, now, expires_at) if mine.update(claimed_at=now, next_at=expires_at) else None


def refresh_reading(*, reading: ProviderReading, now: datetime) -> bool:
    """Asks and writes, under the claim that `reading` was loaded with. False: it failed, or lost its claim."""
    account, subject = reading.account, SUBJECTS[reading.subject]
    machines = running_machines(account)
    deadline = time.monotonic() + settings.POLL_TIMEOUT_SECONDS
    try:
        told = subject.read(account, open_adapter(account), machines, deadline)
    except Exception as error:  # noqa: BLE001 - an adapter with a bug must back off like any other; the bug is logged
        provider_error = as_provider_error(error, account)
        meters.count("provider_readings", provider=account.kind, subject=subject.name, result=provider_error.kind)
        reading_failed(reading, provider_error, now=now)
        return False
    meters.count("provider_readings", provider=account.kind, subject=subject.name, result="ok")
    return write_reading(reading, machines, told, now=now)


def running_machines(account: ProviderAccount) -> dict[tuple[str, str], int]:
    """(region, external id) of those that may have something to tell, with their primary keys."""
    rows = Instance.objects.filter(account=account, gone_at=None).exclude(state=InstanceState.STOPPED)
    return {(region, external): pk for pk, region, external in rows.values_list("pk", "region", "external_id")}


@transaction.atomic
def write_reading(reading: ProviderReading, machines: Keys, told: list[Any], *, now: datetime) -> bool:
    """False: somebody else holds the claim by now."""
    subject = SUBJECTS[reading.subject]
    mine = ProviderReading.objects.filter(pk=reading.pk, claimed_at=reading.claimed_at, account__disconnected_at=None)
    done = mine.update(
        claimed_at=None,
        read_at=now,
        failures=0,
        error_kind="",
        error_detail="",
        next_at=later(now, timedelta(seconds=subject.interval_of(reading.account.kind))),
    )
    if done:
        subject.keep(reading.account, machines, told, now)
    return bool(done)


def reading_failed(reading: ProviderReading, error: ProviderError, *, now: datetime) -> None:
    interval = SUBJECTS[reading.subject].interval_of(reading.account.kind)
    ProviderReading.objects.filter(pk=reading.pk, claimed_at=reading.claimed_at).update(
        claimed_at=None,
        failures=F("failures") + 1,
        failed_at=now,
        error_kind=error.kind,
        error_detail=shown_text(reading.account, error),
        next_at=later(now, backoff(interval, reading.failures + 1, error)),
    )
