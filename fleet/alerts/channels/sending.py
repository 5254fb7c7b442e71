"""Sends what waits: claims a channel, sends outside any transaction, and records what came of it.

One worker at a time sends through a channel. Between sending and recording a process can die, and then nobody knows: a channel whose other
side recognises a message takes it again; any other gets it once more and never a third time.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from time import sleep
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from fleet.alerts.channels.credentials import config_of
from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.channels.picking import WAITING, batch_of, next_batch, waiting_rows
from fleet.alerts.channels.readers import has_reader
from fleet.alerts.channels.recording import give_up, interrupted, record_outcome
from fleet.alerts.channels.senders.base import Outcome, Result, Sender
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.texts import message_of
from fleet.inventory.credentials import CredentialError
from fleet.providers.redact import redact
from fleet.telemetry.scrape.run import installation_guard

logger = logging.getLogger(__name__)
State = DeliveryState
# Longer than a worker sends in one go, with its last answer awaited.
LEASE = timedelta(minutes=3)
# Until a worker picks it up; then the lease begins.
PICKED_UP_WITHIN = timedelta(seconds=30)
BUDGET_SECONDS = 60.0
# A pause for the other side's pace that is waited out rather than left to the next beat.
SHORT_PAUSE_SECONDS = 8.0
# Of the parts of an address: "v1" and "hook" are no secrets.
SHORTEST_SECRET = 8
# For what waits behind others while the channel fails.
TOO_LATE = timedelta(hours=24)


def claim_due(*, now: datetime, at_once: int) -> list[tuple[int, uuid.UUID]]:
    """The channels that have something to send and that nobody sends through: (channel, claim).

    With those that are being sent through, at most `at_once`, and of one team at most half: whose servers hang, only that team waits.
    """
    open_rows = Q(state__in=WAITING, next_attempt_at__lte=now) | Q(state=State.SENDING)
    due = Delivery.objects.filter(open_rows).values("channel")
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    may = Q(hold_until=None) | Q(hold_until__lte=now)
    working = Counter(Channel.objects.filter(claimed_until__gt=now).values_list("team", flat=True))
    claims = []
    rows = Channel.objects.filter(free, may, pk__in=due, enabled=True, broken="").order_by(
        "failures", "last_ok_at", "pk"
    )
    for pk, team_id in rows.values_list("pk", "team"):
        if working.total() >= at_once:
            break
        claim = uuid.uuid4()
        if working[team_id] < max(1, at_once // 2) and Channel.objects.filter(free, pk=pk).update(
            claim=claim, claimed_until=now + PICKED_UP_WITHIN
        ):
            working[team_id] += 1
            claims.append((pk, claim))
    return claims


def work_off(channel_id: int, claim: uuid.UUID) -> int:
    """Sends until nothing is due, the channel has to wait, or the time is up. Returns the number of messages."""
    now = timezone.now()
    mine = Channel.objects.filter(pk=channel_id, claim=claim)
    # Late, somebody else may hold it already; it is sent again by the next beat.
    if not mine.filter(claimed_until__gt=now).update(claimed_until=now + LEASE):
        return 0
    channel = mine.select_related("owner", "team").get()
    interrupted(channel, now=timezone.now())
    ends, sent = time.monotonic() + BUDGET_SECONDS, 0
    while time.monotonic() < ends and _may_send(channel, claim):
        if not _send_next(channel, claim):
            break
        sent += 1
    mine.update(claim=None, claimed_until=None)
    return sent


def _may_send(channel: Channel, claim: uuid.UUID) -> bool:
    channel.refresh_from_db(fields=["enabled", "broken", "claim", "hold_until", "failures", "options", "secret", "broken_at"])  # fmt: skip
    pause = (channel.hold_until - timezone.now()).total_seconds() if channel.hold_until else 0.0
    if 0 < pause <= SHORT_PAUSE_SECONDS and not channel.failures:
        sleep(pause)
        pause = 0.0
    if not has_reader(channel):
        give_up(channel, "left", state=State.SUPPRESSED)
        return False
    return channel.claim == claim and channel.enabled and not channel.broken and pause <= 0


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
    try:
        outcome = SENDERS[channel.kind].send(message, config, installation_guard())
    except Exception as error:  # noqa: BLE001 - a sender with a bug must not stop its channel
        # Its text may hold what it was about, secrets included.
        logger.error("Sender %s failed: %s", channel.kind, type(error).__name__)  # noqa: TRY400
        return Outcome(Result.UNCERTAIN, "failed", type(error).__name__)
    return replace(outcome, detail=redact(outcome.detail, secrets_in(config, SENDERS[channel.kind])))


def secrets_in(config: Mapping[str, str], sender: Sender) -> set[str]:
    """What services may echo: the secret fields, and what stands behind the host of a secret address."""
    values = {config[field.name] for field in sender.fields if field.secret and config.get(field.name)}
    addresses = [urlsplit(value) for value in values if "://" in value]
    parts = {part for url in addresses for part in (url.path, url.query, *url.path.split("/"), *url.query.split("&"))}
    return values | {part for part in parts if len(part) >= SHORTEST_SECRET}
