"""Sends what waits: claims a channel, sends outside any transaction, and records what came of it.

One worker at a time sends through a channel. Between sending and recording a process can die, and then nobody knows: a channel whose other
side recognises a message takes it again; any other gets it once more and never a third time.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from fleet.alerts.channels.credentials import config_of
from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.channels.picking import WAITING, batch_of, next_batch, waiting_rows
from fleet.alerts.channels.recording import give_up, interrupted, record_outcome
from fleet.alerts.channels.senders.base import Outcome, Result
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.texts import message_of
from fleet.inventory.credentials import CredentialError
from fleet.teams.models import Membership
from fleet.telemetry.scrape.run import installation_guard

State = DeliveryState
# Longer than a worker sends in one go, with its last answer awaited.
LEASE = timedelta(minutes=3)
BUDGET_SECONDS = 60.0
AT_ONCE = 50
# For what waits behind others while the channel fails.
TOO_LATE = timedelta(hours=24)


def claim_due(*, now: datetime) -> list[tuple[int, uuid.UUID]]:
    """The channels that have something to send and that nobody sends through: (channel, claim)."""
    open_rows = Q(state__in=WAITING, next_attempt_at__lte=now) | Q(state=State.SENDING)
    due = Delivery.objects.filter(open_rows).values("channel")
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    may = Q(hold_until=None) | Q(hold_until__lte=now)
    claims = []
    rows = Channel.objects.filter(free, may, pk__in=due, enabled=True, broken="").order_by("last_ok_at", "pk")
    for pk in rows.values_list("pk", flat=True)[:AT_ONCE]:
        claim = uuid.uuid4()
        if Channel.objects.filter(free, pk=pk).update(claim=claim, claimed_until=now + LEASE):
            claims.append((pk, claim))
    return claims


def work_off(channel_id: int, claim: uuid.UUID) -> int:
    """Sends until nothing is due, the channel has to wait, or the time is up. Returns the number of messages."""
    channel = Channel.objects.select_related("owner", "team").filter(pk=channel_id, claim=claim).first()
    if channel is None:
        return 0
    interrupted(channel, now=timezone.now())
    ends, sent = time.monotonic() + BUDGET_SECONDS, 0
    while time.monotonic() < ends and _may_send(channel, claim):
        if not _send_next(channel, claim):
            break
        sent += 1
    Channel.objects.filter(pk=channel_id, claim=claim).update(claim=None, claimed_until=None)
    return sent


def _may_send(channel: Channel, claim: uuid.UUID) -> bool:
    channel.refresh_from_db(fields=["enabled", "broken", "claim", "hold_until", "failures", "options", "secret", "broken_at"])  # fmt: skip
    waits = channel.hold_until is not None and channel.hold_until > timezone.now()
    if not has_reader(channel):
        give_up(channel, "left", state=State.SUPPRESSED)
        return False
    return channel.claim == claim and channel.enabled and not channel.broken and not waits


def has_reader(channel: Channel) -> bool:
    """A person's own channel ends with their membership, whatever rows are left of it."""
    if channel.owner is None:
        return True
    return channel.owner.is_active and Membership.objects.filter(team=channel.team_id, user=channel.owner).exists()


def _send_next(channel: Channel, claim: uuid.UUID) -> bool:
    now = timezone.now()
    sender = SENDERS.get(channel.kind)
    if sender is None:
        give_up(channel, "unknown_kind", state=State.DEAD)
        return False
    if channel.failures:
        late = Delivery.objects.filter(channel=channel, state__in=WAITING, next_attempt_at__lt=now - TOO_LATE)
        late.update(state=State.DEAD, error="too_late")
    rows = next_batch(waiting_rows(channel), sender, now)
    if not rows or not _take(channel, claim, rows, now):
        return False
    started = time.monotonic()
    outcome = _send(channel, rows, now)
    took_ms = round((time.monotonic() - started) * 1_000)
    record_outcome(channel, rows, outcome, sender=sender, now=timezone.now(), took_ms=took_ms, jitter=random.random())  # noqa: S311
    return True


@transaction.atomic
def _take(channel: Channel, claim: uuid.UUID, rows: Sequence[Delivery], now: datetime) -> bool:
    """Compare-and-set: only while the claim is ours, and only rows that nobody has changed."""
    if not Channel.objects.select_for_update().filter(pk=channel.pk, claim=claim, claimed_until__gt=now).exists():
        return False
    batch = batch_of(rows) or uuid.uuid4()
    waiting = Delivery.objects.filter(pk__in=[row.pk for row in rows], state__in=WAITING)
    taken = waiting.update(state=State.SENDING, batch=batch, claimed_at=now, attempts=F("attempts") + 1)
    if taken != len(rows):
        transaction.set_rollback(True)
        return False
    for row in rows:
        row.batch, row.attempts = batch, row.attempts + 1
    return True


def _send(channel: Channel, rows: Sequence[Delivery], now: datetime) -> Outcome:
    try:
        config = config_of(channel)
    except CredentialError as error:
        return Outcome(Result.BROKEN, "no_credentials", str(error)[:200])
    message = message_of(channel, rows, now=now)
    return SENDERS[channel.kind].send(message, config, installation_guard())
