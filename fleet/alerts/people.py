"""What people do with alerts. An act on an alert that has closed meanwhile changes nothing and says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.alerts.book import lock_team
from fleet.alerts.course import Course
from fleet.alerts.escalation import check_reachable
from fleet.alerts.models import Alert, AlertEvent, AlertEventKind, Severity
from fleet.alerts.outbox import announce
from fleet.alerts.windows import windows_in_force
from fleet.teams.audit import Actor, record
from fleet.teams.models import User

Kind = AlertEventKind
LONGEST_SNOOZE = timedelta(days=90)
Act = Callable[[Course], object]


@transaction.atomic
def acknowledge_alert(*, actor: Actor, alert: Alert, now: datetime, note: str = "") -> bool:
    """Somebody works on it: reminders stop, and so do news that are no worse. False when it is closed or acknowledged already."""
    note = note[:300]

    def act(course: Course) -> object:
        row = course.alert
        if row.acknowledged_at is not None:
            return None
        row.acknowledged_at, row.acknowledged_by, row.acknowledged_note = now, actor.user, note
        return course.note(Kind.ACKNOWLEDGED, now, note=note)

    if done := _change(actor=actor, alert=alert, now=now, act=act):
        record(actor=actor, team=alert.team, action="alert.acknowledge", target=alert, new={"reason": note})
    return done


@transaction.atomic
def snooze_alert(*, actor: Actor, alert: Alert, now: datetime, until: datetime | None) -> bool:
    """Quiet until then, or, with None, until it gets worse; it comes back early if it gets worse. False when it is closed.

    Raises ValidationError for a moment that is past or too far.
    """
    if until is not None and until <= now:
        raise ValidationError({"until": _("Choose a time that is still to come.")})
    if until is not None and until > now + LONGEST_SNOOZE:
        raise ValidationError({"until": _("Choose a time within the next 90 days, or until it gets worse.")})
    told = until.isoformat() if until else None

    def act(course: Course) -> object:
        row = course.alert
        row.snoozed_at, row.snoozed_by, row.snoozed_until = now, actor.user, until
        row.snoozed_at_severity = row.severity
        return course.note(Kind.SNOOZED, now, until=told)

    if done := _change(actor=actor, alert=alert, now=now, act=act):
        record(actor=actor, team=alert.team, action="alert.snooze", target=alert, new={"until": told})
    return done


@transaction.atomic
def wake_alert(*, actor: Actor, alert: Alert, now: datetime) -> bool:
    """Ends a snooze. False when it is closed or not snoozed."""

    def act(course: Course) -> object:
        return course.wake(now, "person") if course.alert.is_snoozed else None

    if done := _change(actor=actor, alert=alert, now=now, act=act):
        record(actor=actor, team=alert.team, action="alert.wake", target=alert)
    return done


@transaction.atomic
def escalate_alert(*, actor: Actor, alert: Alert, now: datetime, person: User | None = None) -> bool:
    """That person is told on their own channels, and of all that happens to it from then on; with None, whoever stands behind the first readers.

    False when it is closed or escalated so already. Raises ValidationError where nothing would reach the person.
    """
    if person is not None:
        check_reachable(team=alert.team, person=person)

    def act(course: Course) -> object:
        row = course.alert
        if row.escalated_at is not None and row.escalated_to == person:
            return None
        return course.escalate(now, person)

    if done := _change(actor=actor, alert=alert, now=now, act=act):
        to = person.display_name if person else ""
        record(actor=actor, team=alert.team, action="alert.escalate", target=alert, new={"person": to})
    return done


@transaction.atomic
def resolve_note(*, actor: Actor, alert: Alert, now: datetime) -> bool:
    """Puts a note away until its rule has stopped firing. False when it is closed.

    Raises ValidationError for a warning: those resolve by evidence alone.
    """

    def act(course: Course) -> object:
        if course.alert.severity != Severity.NOTE:
            raise ValidationError(_("Warnings close when the evidence shows that they are over. Snooze it instead."))
        course.alert.dismissed = True
        for part in list(course.signals):
            course.release(part, now, why="person")
        course.settle(now)
        return True

    if done := _change(actor=actor, alert=alert, now=now, act=act):
        record(actor=actor, team=alert.team, action="alert.resolve", target=alert)
    return done


def _change(*, actor: Actor, alert: Alert, now: datetime, act: Act) -> bool:
    """Whether `act` did anything to the alert as it is now; `alert` is brought up to date."""
    lock_team(alert.team)
    row = Alert.objects.filter(pk=alert.pk, closed_at=None).first()
    if row is None:
        return False
    course = Course(row, windows_in_force(team=alert.team, now=now))
    course.signals = {(signal.kind, signal.detail): signal for signal in row.signals.filter(cleared_at=None)}
    if not act(course):
        return False
    _write(course, actor)
    alert.refresh_from_db()
    return True


def _write(course: Course, actor: Actor) -> None:
    course.alert.save()
    for signal in course.changed_signals.values():
        signal.save()
    for event in course.events:
        event.actor, event.actor_label = actor.user, actor.label[:200]
    AlertEvent.objects.bulk_create(course.events)
    announce(*course.events)
