"""How channels did lately: a strip of 14 days, and one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Max, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.words import failure_text

DAYS = 14
BAD = (DeliveryState.DEAD, DeliveryState.FAILED)
Counts = Mapping[tuple[int, date], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Health:
    """`days`: per day, oldest first, "o" all delivered, "x" some failed, "" nothing to send. `trouble`: what to mend, in words."""

    channel: Channel
    kind: str
    days: list[str]
    sent: int
    bad: int
    last_at: datetime | None
    trouble: str


def health_of(channels: Iterable[Channel], now: datetime) -> list[Health]:
    """Two queries, however many channels."""
    rows = list(channels)
    today = timezone.localtime(now).date()
    recent = Delivery.objects.filter(channel__in=rows, created_at__gt=now - timedelta(days=DAYS))
    by_day = recent.annotate(day=TruncDate("created_at")).values_list("channel", "day")
    counted = by_day.annotate(
        sent=Count("pk", filter=Q(state=DeliveryState.SENT)), bad=Count("pk", filter=Q(state__in=BAD))
    )
    counts = {(channel, day): (sent, bad) for channel, day, sent, bad in counted}
    last = dict(recent.values_list("channel").annotate(last=Max("sent_at")))
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    return [_health(channel, counts, days, last.get(channel.pk)) for channel in rows]


def _health(channel: Channel, counts: Counts, days: list[date], last_at: datetime | None) -> Health:
    pairs = [counts.get((channel.pk, day), (0, 0)) for day in days]
    sender = SENDERS.get(channel.kind)
    return Health(
        channel=channel,
        kind=str(sender.label) if sender else channel.kind,
        days=["x" if bad else "o" if sent else "" for sent, bad in pairs],
        sent=sum(sent for sent, _bad in pairs),
        bad=sum(bad for _sent, bad in pairs),
        last_at=last_at,
        trouble=failure_text(channel.broken) if channel.broken else "",
    )
