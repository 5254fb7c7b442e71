"""What people are told of a stop, as alerts: the warning and its reminders, that it is called off, that it failed, that it is proved.

Every function writes rows only and may be called again: what was said is no news. The links in these messages are acts of `links.py`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Q

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.door import clear_event, raise_event, renew_event
from fleet.alerts.findings import URGENT, WARNING
from fleet.alerts.models import AlertEventKind
from fleet.idle.shutdown.models import IdleStop

WARNED, FAILED = "idle.stop", "idle.failed"
SECONDS_PER_HOUR = 3_600
# Why an alert of ours closed: keys of words.CLOSED.
CALLED_OFF, PROVED, GIVEN_UP = "idle_called_off", "idle_stopped", "idle_failed"


def subject_of(stop: IdleStop) -> str:
    return f"idle_stop:{stop.pk}"


def warn(stop: IdleStop, *, now: datetime) -> None:
    raise_event(
        team=stop.team,
        cause=WARNED,
        subject=subject_of(stop),
        severity=WARNING,
        signal="idle_stop",
        instance=stop.instance,
        since=stop.quiet_since,
        price_per_hour=stop.price_per_hour,
        currency=stop.currency,
        values=_values(stop, earliest=now + timedelta(seconds=stop.terms["grace_seconds"])),
        now=now,
    )


def note_deadline(stop: IdleStop, *, now: datetime) -> None:
    _renew(stop, WARNED, now, says=None, **_deadline(stop))


def remind(stop: IdleStop, *, now: datetime) -> None:
    _renew(stop, WARNED, now, says=AlertEventKind.REMINDED, **_deadline(stop))


def tell_put_off(stop: IdleStop, *, now: datetime) -> None:
    """Office hours have begun: it stays until they end."""
    _renew(stop, WARNED, now, says=AlertEventKind.REMINDED, put_off=True, **_deadline(stop))


def tell_cancelled(stop: IdleStop, *, now: datetime) -> None:
    _end(stop, CALLED_OFF, now, outcome=stop.why)


def tell_stopped(stop: IdleStop, *, now: datetime) -> None:
    proved_at = stop.operation.proved_at if stop.operation and stop.operation.proved_at else now
    _end(stop, PROVED, now, outcome="stopped", proved_at=proved_at.isoformat())


def tell_failed(stop: IdleStop, *, now: datetime) -> None:
    """At once, as something urgent of its own; each further time with what it has burnt since, to whoever stands behind the first readers."""
    clear_event(team=stop.team, cause=WARNED, subject=subject_of(stop), now=now, why=GIVEN_UP)
    values = _failure(stop, now)
    told_before = renew_event(
        team=stop.team,
        cause=FAILED,
        subject=subject_of(stop),
        now=now,
        values=values,
        says=AlertEventKind.ESCALATED,
    )
    if told_before is None:
        raise_event(
            team=stop.team,
            cause=FAILED,
            subject=subject_of(stop),
            severity=URGENT,
            signal="idle_failed",
            instance=stop.instance,
            since=stop.ordered_at,
            price_per_hour=stop.price_per_hour,
            currency=stop.currency,
            values={**_values(stop), **values},
            now=now,
        )


def delivered_at(stop: IdleStop) -> datetime | None:
    """When a channel first took the warning of this stop: the owner's own channel where they have one, else one of the team's."""
    owner_id = stop.instance.owner_id
    own = Channel.objects.filter(team=stop.team_id, owner=owner_id, enabled=True)
    heard_by = Q(channel__owner=owner_id) if owner_id and own.exists() else Q(channel__owner=None)
    sent = Delivery.objects.filter(
        heard_by,
        alert__team=stop.team_id,
        alert__cause=WARNED,
        alert__subject=subject_of(stop),
        state=DeliveryState.SENT,
        sent_at__isnull=False,
    )
    return sent.order_by("sent_at").values_list("sent_at", flat=True).first()


def burnt(stop: IdleStop, now: datetime) -> Decimal | None:
    """What it has cost since it was first ordered to stop; None: no price is known."""
    if stop.price_per_hour is None or stop.ordered_at is None:
        return None
    first = stop.events.filter(kind="stopping").order_by("at").values_list("at", flat=True).first()
    seconds = max(0.0, (now - (first or stop.ordered_at)).total_seconds())
    return stop.price_per_hour * Decimal(str(seconds)) / SECONDS_PER_HOUR


def _values(stop: IdleStop, *, earliest: datetime | None = None) -> dict[str, Any]:
    return {
        "act": stop.verb,
        "policy": stop.policy_name,
        "quiet_since": stop.quiet_since.isoformat() if stop.quiet_since else None,
        "because": stop.because,
        "earliest": earliest.isoformat() if earliest else None,
        "grace_minutes": stop.terms["grace_seconds"] // 60,
        "snoozes": stop.snoozes,
    }


def _deadline(stop: IdleStop) -> dict[str, Any]:
    return {"deadline": stop.deadline.isoformat() if stop.deadline else None}


def _failure(stop: IdleStop, now: datetime) -> dict[str, Any]:
    operation, money = stop.operation, burnt(stop, now)
    return {
        "asked_at": stop.ordered_at.isoformat() if stop.ordered_at else None,
        "orders": stop.orders,
        "seen": operation.seen_state if operation else "",
        "billing": operation.seen_billing if operation else "",
        "error": (operation.error_kind if operation else "") or stop.refused,
        "burnt": None if money is None else str(money.quantize(Decimal("0.01"))),
        "currency": stop.currency,
    }


def _renew(stop: IdleStop, cause: str, now: datetime, *, says: AlertEventKind | None, **values: Any) -> None:
    renew_event(team=stop.team, cause=cause, subject=subject_of(stop), now=now, values=values, says=says)


def _end(stop: IdleStop, why: str, now: datetime, **values: Any) -> None:
    for cause in (WARNED, FAILED):
        _renew(stop, cause, now, says=None, **values)
        clear_event(team=stop.team, cause=cause, subject=subject_of(stop), now=now, why=why)
