"""The open alerts of a team, read together, brought up to date in memory, and written together: a constant number of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection, transaction
from django.db.models import Q

from fleet.alerts.course import NO_TIME, REOPEN_WITHIN, Course
from fleet.alerts.findings import RANKS, Finding, Key
from fleet.alerts.models import Alert, AlertEvent, MaintenanceWindow, Signal
from fleet.alerts.outbox import announce
from fleet.alerts.windows import windows_in_force
from fleet.teams.models import Team

# Two writers of one team's alerts take turns. Any number that nothing else locks by.
WRITE_LOCK = 0x616C72
BATCH = 1_000
_ALERT_FIELDS = [
    field.name for field in Alert._meta.concrete_fields if field.name not in {"id", "team", "cause", "subject", "opened_at"}
]  # fmt: skip
_SIGNAL_FIELDS = [
    "severity",
    "eased_since",
    "scope",
    "price_per_hour",
    "currency",
    "clear_since",
    "cleared_at",
    "values",
]


def lock_team(team: Team) -> None:
    """Until the end of the transaction. Everything that changes alerts takes it first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [WRITE_LOCK, team.pk])


class Book:
    """Open it in a transaction with `opened`; `write` ends it."""

    def __init__(self, team: Team, windows: Sequence[MaintenanceWindow], now: datetime) -> None:
        self.team, self.windows, self.now = team, windows, now
        self._open: dict[Key, Course] = {}
        self._closed: dict[Key, Alert] = {}
        self.dismissed: dict[Key, Alert] = {}

    @classmethod
    def opened(cls, *, team: Team, now: datetime, key: Key | None = None) -> Book:
        """With all alerts of the team that are open or could open again, or with those of one key only."""
        assert transaction.get_connection().in_atomic_block
        lock_team(team)
        book = cls(team, windows_in_force(team=team, now=now), now)
        lately = Q(closed_at=None) | Q(closed_at__gte=now - REOPEN_WITHIN) | Q(dismissed=True)
        rows = Alert.objects.filter(lately, team=team)
        if key is not None:
            rows = rows.filter(cause=key[0], subject=key[1])
        book._take_in(rows.order_by("closed_at"))
        return book

    def __iter__(self) -> Iterator[Course]:
        return iter(self._open.values())

    def course(self, key: Key) -> Course | None:
        return self._open.get(key)

    def take(self, finding: Finding, *, since: datetime | None = None, easing: timedelta = NO_TIME) -> Course | None:
        """A finding that fires, since then (None: as it says itself, else now). Its alert is opened, or opened again, where none is open; None where a person put it away."""
        course = self._open.get(finding.key)
        if course is None and self._is_put_away(finding):
            return None
        if course is None:
            course = self._open[finding.key] = self._begin(finding)
        course.take(finding, self.now, since=since or finding.since or self.now, easing=easing)
        return course

    def release(self, course: Course, kinds: Collection[str], *, lasting: timedelta = NO_TIME, why: str) -> None:
        for part in [part for part in course.signals if part[0] in kinds]:
            course.release(part, self.now, lasting=lasting, why=why)

    def write(self) -> list[AlertEvent]:
        """Settles every alert and writes what changed. The events go out in the same transaction."""
        courses = list(self._open.values())
        for course in courses:
            course.settle(self.now)
        self._write_alerts(courses)
        self._write_signals(courses)
        events = [event for course in courses for event in course.events]
        AlertEvent.objects.bulk_create(events, batch_size=BATCH)
        announce(*events)
        return events

    def forget_dismissed(self, seen: Collection[Key]) -> None:
        """What was put away and fires no more may be raised again."""
        over = [alert.pk for key, alert in self.dismissed.items() if key not in seen]
        if over:
            Alert.objects.filter(pk__in=over).update(dismissed=False)

    def _is_put_away(self, finding: Finding) -> bool:
        put_away = self.dismissed.get(finding.key)
        return put_away is not None and RANKS[finding.severity] <= RANKS[put_away.severity]

    def _take_in(self, rows: Iterable[Alert]) -> None:
        for alert in rows:
            key = (alert.cause, alert.subject)
            if alert.is_open:
                self._open[key] = Course(alert, self.windows)
                continue
            # The last one closed stands for the others.
            self._closed[key] = alert
            if alert.dismissed:
                self.dismissed[key] = alert
        by_pk = {course.alert.pk: course for course in self._open.values()}
        for signal in Signal.objects.filter(alert_id__in=by_pk, cleared_at=None):
            by_pk[signal.alert_id].signals[signal.kind, signal.detail] = signal

    def _begin(self, finding: Finding) -> Course:
        closed = self._closed.pop(finding.key, None)
        alert = self._fresh(finding) if closed is None else self._again(closed)
        return Course(alert, self.windows, begins=True)

    def _fresh(self, finding: Finding) -> Alert:
        return Alert(
            team=self.team,
            cause=finding.cause,
            subject=finding.subject,
            instance_id=finding.instance_id,
            account_id=finding.account_id,
            severity=finding.severity,
            since=self.now,
            opened_at=self.now,
        )

    def _again(self, alert: Alert) -> Alert:
        """What it cost while it was closed is not its doing."""
        alert.money_before = alert.money_so_far(self.now) or Decimal(0)
        alert.price_per_hour, alert.priced_from = None, self.now
        # What was told as part of an outage only did not come and go; what people had heard of by itself did.
        alert.reopened += alert.closed_why != "folded" or alert.announced_at is not None
        alert.closed_at, alert.closed_why, alert.dismissed = None, "", False
        alert.acknowledged_at = alert.acknowledged_by = alert.announced_at = None
        alert.escalated_at = alert.escalated_to = None
        alert.acknowledged_note = ""
        return alert

    def _write_alerts(self, courses: Sequence[Course]) -> None:
        created = Alert.objects.bulk_create(
            [course.alert for course in courses if course.alert.pk is None], batch_size=BATCH
        )
        fresh = {alert.pk for alert in created}
        known = [course.alert for course in courses if course.changed and not course.begins]
        again = [course.alert for course in courses if course.begins and course.alert.pk not in fresh]
        if known or again:
            Alert.objects.bulk_update([*known, *again], _ALERT_FIELDS, batch_size=BATCH)

    def _write_signals(self, courses: Sequence[Course]) -> None:
        changed = [signal for course in courses for signal in course.changed_signals.values() if signal.pk]
        if changed:
            Signal.objects.bulk_update(changed, _SIGNAL_FIELDS, batch_size=BATCH)
        Signal.objects.bulk_create([signal for course in courses for signal in course.new_signals], batch_size=BATCH)
