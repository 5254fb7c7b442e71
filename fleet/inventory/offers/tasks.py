"""Background work of offers. Every task fetches by id and calls a use-case."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from fleet.inventory.offers.models import OfferSource
from fleet.inventory.offers.refresh import claim_due_sources, ensure_sources, forget_disconnected, refresh_source
from fleet.inventory.offers.table import lay_out_tables
from fleet.inventory.tasks import HARD_LIMIT_SECONDS, SOFT_LIMIT_SECONDS


@shared_task(name="inventory.dispatch_offers")
def dispatch_offers() -> int:
    """Tables and sources of new teams and accounts first, then whoever is due."""
    forget_disconnected()
    lay_out_tables(now=timezone.now())
    ensure_sources()
    return send_due()


def send_due() -> int:
    claims = claim_due_sources(now=timezone.now(), at_once=settings.POLLS_AT_ONCE)
    for claim in claims:
        refresh_offers.apply_async((claim.source_id, claim.claimed_at.isoformat()), expires=claim.expires_at)
    return len(claims)


@shared_task(name="inventory.refresh_offers", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def refresh_offers(source_id: int, claimed_at: str) -> None:
    """Does nothing when its claim is no longer the source's: delivered twice, or picked up too late."""
    taken = datetime.fromisoformat(claimed_at)
    source = OfferSource.objects.select_related("account").filter(pk=source_id, claimed_at=taken).first()
    if source is not None:
        refresh_source(source=source, now=taken)
    # Who waited for a free place need not wait for the next beat.
    send_due()
