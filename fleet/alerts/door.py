"""The one door through which the slices above say that something is wrong, and that it is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction

from fleet.alerts.book import Book
from fleet.alerts.findings import RANKS, Finding
from fleet.alerts.models import Alert, AlertEventKind
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.models import Team


@transaction.atomic
def raise_event(
    *,
    team: Team,
    cause: str,
    subject: str,
    severity: str,
    now: datetime,
    instance: Instance | None = None,
    account: ProviderAccount | None = None,
    values: Mapping[str, Any] | None = None,
    signal: str = "",
    detail: str = "",
    scope: str = "",
    since: datetime | None = None,
    price_per_hour: Decimal | None = None,
    currency: str = "",
    costs: bool = True,
) -> Alert:
    """Open the alert of (team, cause, subject), or bring it up to date; a signal of kind `signal` is folded under it.

    Idempotent: what is known already is no news and makes no event. Concurrent calls take turns. `values` are JSON-ready and free of secrets.
    Without a price the machine's own stands at stake; with `costs` False nothing does. Raises ValueError for an unknown severity.
    """
    if not RANKS.get(severity):
        raise ValueError(f"There is no severity {severity!r}; use one of urgent, warning, note.")
    if not costs:
        price_per_hour = None
    elif price_per_hour is None and instance is not None:
        price_per_hour, currency = instance.price_per_hour, instance.currency
    finding = Finding(
        cause=cause,
        subject=subject,
        kind=signal or cause,
        severity=severity,
        detail=detail,
        since=since,
        instance_id=instance.pk if instance else None,
        account_id=account.pk if account else instance.account_id if instance else None,
        scope=scope,
        price_per_hour=price_per_hour,
        currency=currency or team.currency,
        values=dict(values or {}),
    )
    book = Book.opened(team=team, now=now, key=finding.key)
    course = book.take(finding)
    book.write()
    return course.alert if course else book.dismissed[finding.key]


@transaction.atomic
def clear_event(
    *, team: Team, cause: str, subject: str, now: datetime, signal: str | None = None, why: str = "evidence"
) -> Alert | None:
    """There is evidence that it is over: all of it, or the signals of one kind. The alert resolves with its last signal.

    None where no such alert is open.
    """
    book = Book.opened(team=team, now=now, key=(cause, subject))
    course = book.course((cause, subject))
    if course is None:
        book.forget_dismissed(())
        return None
    kinds = {kind for kind, _detail in course.signals} if signal is None else {signal}
    book.release(course, kinds, why=why)
    book.write()
    return course.alert


@transaction.atomic
def renew_event(
    *,
    team: Team,
    cause: str,
    subject: str,
    now: datetime,
    values: Mapping[str, Any],
    says: AlertEventKind | None = None,
) -> Alert | None:
    """Adds `values` to what an open alert says; `says`: and tells people so, as a reminder or by escalating it.

    None where no such alert is open: it opens nothing.
    """
    book = Book.opened(team=team, now=now, key=(cause, subject))
    course = book.course((cause, subject))
    if course is None:
        return None
    course.renew(values)
    if says == AlertEventKind.ESCALATED:
        course.escalate(now)
    elif says is not None:
        course.note(says, now)
    book.write()
    return course.alert
