from __future__ import annotations

import uuid

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from fleet.alerts.channels import sending
from fleet.alerts.channels.calendar import sync_calendars
from fleet.alerts.channels.keeping import prune_channels


@shared_task(name="alerts.dispatch_channels")
def dispatch_channels() -> int:
    claims = sending.claim_due(now=timezone.now(), at_once=settings.CHANNELS_AT_ONCE)
    for channel_id, claim in claims:
        send_channel.apply_async((channel_id, str(claim)), expires=sending.PICKED_UP_WITHIN.total_seconds())
    return len(claims)


@shared_task(name="alerts.send_channel", soft_time_limit=150, time_limit=170)
def send_channel(channel_id: int, claim: str) -> int:
    sent = sending.work_off(channel_id, uuid.UUID(claim))
    # Who waited for a free place need not wait for the next beat.
    dispatch_channels()
    return sent


@shared_task(name="alerts.prune_channels")
def prune_old_deliveries() -> None:
    prune_channels(now=timezone.now())


@shared_task(name="alerts.sync_calendar")
def sync_calendar() -> int:
    return sync_calendars(now=timezone.now())
