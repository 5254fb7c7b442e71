"""What an attempt leaves behind: the state of its deliveries, and when the channel may send again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from fleet.alerts.channels.breaking import works_again, works_no_more
from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.channels.picking import WAITING
from fleet.alerts.channels.senders.base import Outcome, Result, Sender
from fleet.alerts.channels.senders.registry import SENDERS

State = DeliveryState
FIRST_WAIT_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 1_800.0
# Both: an outage of the other side for some hours must not cost a message.
MOST_ATTEMPTS, TRIED_FOR = 20, timedelta(hours=24)
# The first time nobody can tell, a message that its receiver would not recognise goes out once more.
MOST_UNCERTAIN = 2
MENDED_WITHIN = timedelta(days=7)


def back_off_seconds(failures: int, jitter: float) -> float:
    """Doubles with every failure; `jitter` in [0, 1) spreads it over the upper half, so that channels do not come back together."""
    longest = min(FIRST_WAIT_SECONDS * 2.0 ** min(failures, 16), LONGEST_WAIT_SECONDS)
    return longest * (0.5 + jitter / 2)


@transaction.atomic
def record_outcome(
    channel: Channel, rows: Sequence[Delivery], outcome: Outcome, *, sender: Sender, now: datetime, took_ms: int, jitter: float
) -> None:  # fmt: skip
    """Of rows that are being sent. What somebody else has decided about meanwhile stays as it is."""
    sending = Delivery.objects.filter(channel=channel, batch=rows[0].batch, state=State.SENDING)
    said: dict[str, Any] = {"took_ms": took_ms, "error": outcome.code, "error_detail": outcome.detail[:200]}
    match outcome.result:
        case Result.SENT:
            works_again(channel, now)
            sending.update(state=State.SENT, sent_at=now, response_id=outcome.response_id[:200], **said)
            _went_well(channel, sender, now)
        case Result.REFUSED:
            sending.update(state=State.DEAD, **said)
            _hold(channel, now + _pause(sender))
        case Result.BROKEN:
            works_no_more(channel, outcome.code, now)
            sending.update(state=State.DEAD, **said)
            break_channel(channel, outcome.code, now)
        case Result.RETRY | Result.UNCERTAIN:
            _again(sending, outcome, sender, now, said)
            wait = max(outcome.retry_after_seconds or 0.0, back_off_seconds(channel.failures, jitter))
            _hold(channel, now + timedelta(seconds=wait), failed=True)


def interrupted(channel: Channel, *, now: datetime) -> None:
    """What another worker was sending when it died. Whoever holds the channel's claim calls it: nobody sends them now."""
    rows = Delivery.objects.filter(channel=channel, state=State.SENDING)
    sender = SENDERS.get(channel.kind)
    if sender is not None:
        outcome = Outcome(Result.UNCERTAIN, "no_answer")
        _again(rows, outcome, sender, now, {"error": "no_answer", "error_detail": ""})


def _again(rows: Any, outcome: Outcome, sender: Sender, now: datetime, said: dict[str, Any]) -> None:
    """A message that may have arrived keeps its batch, by which it is known; one that has not is made anew, with what came meanwhile."""
    unsure = outcome.result == Result.UNCERTAIN
    if unsure and not sender.idempotent:
        rows.filter(uncertain__gte=MOST_UNCERTAIN - 1).update(state=State.DEAD, **{**said, "error": "uncertain"})
        rows = rows.filter(uncertain__lt=MOST_UNCERTAIN - 1)
        said = {**said, "uncertain": F("uncertain") + 1}
    rows.filter(attempts__gte=MOST_ATTEMPTS, created_at__lte=now - TRIED_FOR).update(state=State.DEAD, **said)
    kept = {} if unsure else {"batch": None}
    rows.filter(state=State.SENDING).update(state=State.FAILED, next_attempt_at=now, **kept, **said)


def _went_well(channel: Channel, sender: Sender, now: datetime) -> None:
    if channel.broken_at is not None or channel.failures:
        # Works again: what could not be told of alerts that are still open is told now.
        since = max(channel.broken_at or now - MENDED_WITHIN, now - MENDED_WITHIN)
        Delivery.objects.filter(
            channel=channel, state=State.DEAD, alert__closed_at=None, alert__isnull=False,
            created_at__gt=since - timedelta(minutes=1),
        ).exclude(error__in=["refused", "uncertain"]).update(state=State.QUEUED, next_attempt_at=now, batch=None, attempts=0)  # fmt: skip
    Channel.objects.filter(pk=channel.pk).update(
        failures=0, last_ok_at=now, hold_until=now + _pause(sender), broken="", broken_at=None
    )


def break_channel(channel: Channel, code: str, now: datetime) -> None:
    """Nothing is sent until a person mends it; what waits is given up for the same reason."""
    Channel.objects.filter(pk=channel.pk).update(broken=code, broken_at=channel.broken_at or now, failures=F("failures") + 1)  # fmt: skip
    give_up(channel, code, state=State.DEAD)


def give_up(channel: Channel, code: str, *, state: DeliveryState) -> None:
    Delivery.objects.filter(channel=channel, state__in=WAITING).update(state=state, error=code)


def _hold(channel: Channel, until: datetime, *, failed: bool = False) -> None:
    failures = F("failures") + 1 if failed else F("failures")
    Channel.objects.filter(pk=channel.pk).update(hold_until=until, failures=failures)


def _pause(sender: Sender) -> timedelta:
    """Between two messages, so that a minute has no more of them than the other side takes."""
    return timedelta(seconds=60 / sender.limits.per_minute)
