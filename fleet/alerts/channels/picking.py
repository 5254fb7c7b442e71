"""What goes out with the next message of a channel.

News of one alert are folded into one message, so that it cannot be resolved before it was opened; a flood becomes one message with a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.channels.senders.base import Sender

WAITING = (DeliveryState.QUEUED, DeliveryState.FAILED)
# So many alerts at once are told one by one; more of them in one message.
ONE_BY_ONE = 3
MOST_ROWS = 5_000


def waiting_rows(channel: Channel) -> list[Delivery]:
    rows = Delivery.objects.filter(channel=channel, state__in=WAITING).order_by("pk")
    return list(rows.select_related("event", "route", "alert__instance__account", "alert__account", "alert__team", "alert__escalated_to")[:MOST_ROWS])  # fmt: skip


def next_batch(rows: Sequence[Delivery], sender: Sender, now: datetime) -> list[Delivery]:
    """Of the waiting rows of one channel, oldest first; empty where nothing is due.

    A message that nobody knows the end of goes out again as it was, and news of its alerts wait for it.
    """
    unsure = [row for row in rows if row.batch is not None]
    if again := _first_due(unsure, now):
        return [row for row in unsure if row.batch == again.batch]
    blocked = {row.alert_id for row in unsure if row.alert_id}
    fresh = [row for row in rows if row.batch is None and row.alert_id not in blocked]
    first = _first_due(fresh, now)
    if first is None:
        return []
    if first.alert_id is None:
        return [first]
    if not sender.gathers:
        return [_earliest(fresh, first)]
    if first.digest:
        return [row for row in fresh if row.digest and row.route_id == first.route_id and row.next_attempt_at <= now]
    return _gathered(fresh, first, now)


def _gathered(rows: Sequence[Delivery], first: Delivery, now: datetime) -> list[Delivery]:
    due = {row.alert_id for row in rows if _is_like(row, first) and row.next_attempt_at <= now}
    wanted = due if len(due) > ONE_BY_ONE else {first.alert_id}
    # Also what quiet hours hold back: it is older than what is told now.
    return [row for row in rows if row.alert_id in wanted and not row.digest]


def _is_like(row: Delivery, other: Delivery) -> bool:
    return row.alert_id is not None and not row.digest and row.route_id == other.route_id


def _earliest(rows: Iterable[Delivery], due: Delivery) -> Delivery:
    return next(row for row in rows if row.alert_id == due.alert_id)


def _first_due(rows: Iterable[Delivery], now: datetime) -> Delivery | None:
    return next((row for row in rows if row.next_attempt_at <= now), None)


def newest_by_alert(rows: Sequence[Delivery]) -> list[Delivery]:
    """One row an alert, the one that says how it stands."""
    return list({row.alert_id: row for row in sorted(rows, key=lambda row: row.pk)}.values())


def batch_of(rows: Sequence[Delivery]) -> UUID | None:
    return rows[0].batch
