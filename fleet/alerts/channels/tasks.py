from __future__ import annotations

import uuid

from celery import shared_task
from django.utils import timezone

from fleet.alerts.channels import sending
from fleet.alerts.channels.calendar import sync_calendars
from fleet.alerts.channels.keeping import prune_channels


@shared_task(name="alerts.dispatch_channels")
def dispatch_channels() -> int:
    claims = sending.claim_due(now=timezone.now())
    for channel_id, claim in claims:
        # Picked up later, its claim would run out while it is worked off.
        send_channel.apply_async((channel_id, str(claim)), expires=sending.LEASE.total_seconds() / 3)
    return len(claims)


@shared_task(name="alerts.send_channel", soft_time_limit=150, time_limit=170)
def send_channel(channel_id: int, claim: str) -> int:
    return sending.work_off(channel_id, uuid.UUID(claim))


@shared_task(name="alerts.prune_channels")
def prune_old_deliveries() -> None:
    prune_channels(now=timezone.now())


@shared_task(name="alerts.sync_calendar")
def sync_calendar() -> int:
    return sync_calendars(now=timezone.now())
