"""Reads the live offers of accounts, each at its own interval. A list is complete or the former one stays, with its age.

As with listings, a claim is taken by compare-and-set and looked at again before anything is written; a failing account is asked less
and less often, and holds up no other: each is a task of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from django.conf import settings
from django.db import transaction
from django.db.models import F

from fleet.inventory.adapters import open_adapter
from fleet.inventory.failures import as_provider_error, shown_text
from fleet.inventory.listing import bounded
from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers.models import OfferSource, SourceKind
from fleet.inventory.offers.rows import Values, values_of
from fleet.inventory.offers.store import replace_offers
from fleet.inventory.poll import WRITE_ALLOWANCE, backoff, being_read, later
from fleet.meters import meters
from fleet.providers.base import Capability, ListsOffers, OfferQuery
from fleet.providers.errors import ProviderError
from fleet.providers.registry import kinds_with

MOST_OFFERS = 100_000


@dataclass(frozen=True, slots=True)
class OfferClaim:
    """The right to read one source, until `expires_at`."""

    source_id: int
    claimed_at: datetime
    expires_at: datetime


def ensure_sources() -> int:
    """A source for every account whose provider has offers and that has none yet."""
    missing = ProviderAccount.objects.filter(
        kind__in=kinds_with(Capability.OFFERS), disconnected_at=None, offer_source=None
    )
    sources = [
        OfferSource(team_id=account.team_id, kind=SourceKind.LIVE, name=account.name, account=account)
        for account in missing.only("team_id", "name")
    ]
    return len(OfferSource.objects.bulk_create(sources, ignore_conflicts=True))


def forget_disconnected() -> int:
    """Drops what accounts offered that were disconnected since. Returns how many accounts that were."""
    gone = OfferSource.objects.filter(account__disconnected_at__isnull=False)
    count = gone.count()
    gone.delete()
    return count


def claim_due_sources(*, now: datetime, at_once: int) -> list[OfferClaim]:
    """The longest due first; with everything else that is being read of providers, at most `at_once`.

    Whose machines are being read, or could not be, waits: an account that hangs must not hold two places.
    """
    alive = OfferSource.objects.filter(
        kind=SourceKind.LIVE,
        account__enabled=True,
        account__disconnected_at=None,
        account__kind__in=kinds_with(Capability.OFFERS),
        account__failures=0,
    ).exclude(account__poll_started_at__isnull=False, account__next_poll_at__gt=now)
    due = alive.filter(next_at__lte=now).order_by("next_at").values_list("pk", "next_at")
    claims = [
        claim_source(pk, seen_next_at=next_at, now=now) for pk, next_at in due[: max(0, at_once - being_read(now=now))]
    ]
    return [taken for taken in claims if taken is not None]


def claim_source(source_id: int, *, seen_next_at: datetime, now: datetime) -> OfferClaim | None:
    """None: somebody else was quicker."""
    expires_at = now + timedelta(seconds=settings.POLL_TIMEOUT_SECONDS) + WRITE_ALLOWANCE
    taken = OfferSource.objects.filter(pk=source_id, next_at=seen_next_at).update(claimed_at=now, next_at=expires_at)
    return OfferClaim(source_id, now, expires_at) if taken else None


def refresh_source(*, source: OfferSource, now: datetime) -> int | None:
    """Reads the account and writes what it offers, under the claim that `source` was loaded with. None: it failed, or lost its claim."""
    assert source.account is not None
    try:
        rows = read_offers(source.account)
    except Exception as error:  # noqa: BLE001 - an adapter with a bug must back off like any other; the bug is logged
        provider_error = as_provider_error(error, source.account)
        meters.count("provider_offers", provider=source.account.kind, result=provider_error.kind)
        reading_failed(source, provider_error, now=now)
        return None
    meters.count("provider_offers", provider=source.account.kind, result="ok")
    return write_offers(source, rows, now=now)


def read_offers(account: ProviderAccount) -> list[Values]:
    """Every offer, or it raises. Between two offers the clock is looked at; a single call has the adapter's own time-out."""
    adapter = cast(ListsOffers, open_adapter(account))
    deadline = time.monotonic() + settings.POLL_TIMEOUT_SECONDS
    offers = bounded(adapter.offers(OfferQuery()), MOST_OFFERS, deadline)
    read = (values_of(offer, provider=account.kind, default_currency=account.currency) for offer in offers)
    return [values for values in read if values is not None]


@transaction.atomic
def write_offers(source: OfferSource, rows: list[Values], *, now: datetime) -> int | None:
    """None: somebody else holds the claim by now."""
    mine = OfferSource.objects.filter(pk=source.pk, claimed_at=source.claimed_at, account__disconnected_at=None)
    done = mine.update(
        claimed_at=None,
        read_at=now,
        failures=0,
        error_kind="",
        error_detail="",
        next_at=later(now, timedelta(seconds=source.interval_seconds)),
    )
    return replace_offers(source, rows, now=now) if done else None


def reading_failed(source: OfferSource, error: ProviderError, *, now: datetime) -> None:
    assert source.account is not None
    OfferSource.objects.filter(pk=source.pk, claimed_at=source.claimed_at).update(
        claimed_at=None,
        failures=F("failures") + 1,
        failed_at=now,
        error_kind=error.kind,
        error_detail=shown_text(source.account, error),
        next_at=later(now, backoff(source.interval_seconds, source.failures + 1, error)),
    )
