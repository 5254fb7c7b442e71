"""Background work of what providers say. Every task fetches by id and calls a use-case."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from fleet.inventory.provider_word.keeping import prune_usage
from fleet.inventory.provider_word.models import ProviderReading
from fleet.inventory.provider_word.notices import prune_notices
from fleet.inventory.provider_word.reading import claim_due_readings, ensure_readings, refresh_reading
from fleet.inventory.tasks import HARD_LIMIT_SECONDS, SOFT_LIMIT_SECONDS


@shared_task(name="inventory.dispatch_readings")
def dispatch_readings() -> int:
    ensure_readings()
    return send_due()


def send_due() -> int:
    claims = claim_due_readings(now=timezone.now(), at_once=settings.POLLS_AT_ONCE)
    for claim in claims:
        read_word.apply_async((claim.reading_id, claim.claimed_at.isoformat()), expires=claim.expires_at)
    return len(claims)


@shared_task(name="inventory.read_word", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def read_word(reading_id: int, claimed_at: str) -> None:
    """Does nothing when its claim is no longer the reading's: delivered twice, or picked up too late."""
    taken = datetime.fromisoformat(claimed_at)
    reading = ProviderReading.objects.select_related("account").filter(pk=reading_id, claimed_at=taken).first()
    if reading is not None:
        refresh_reading(reading=reading, now=taken)
    # Who waited for a free place need not wait for the next beat.
    send_due()


@shared_task(name="inventory.prune_usage")
def prune() -> int:
    now = timezone.now()
    return prune_usage(now=now) + prune_notices(now=now)
