"""What the findings of an evaluation make of a team's alerts: for how long a rule has to fire, what is over, and what time alone does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property

from fleet.alerts.book import Book
from fleet.alerts.course import EASES_AFTER, NO_TIME, Course
from fleet.alerts.findings import Finding, Part
from fleet.alerts.judge import Chosen, Judgement
from fleet.alerts.models import AlertEventKind, EscalationPolicy, PendingSignal, Severity
from fleet.alerts.rules.reporting import NETWORK_OUTAGE, PROVIDER_OUTAGE
from fleet.alerts.snapshot import Snapshot
from fleet.teams.models import Membership, User

Kind = AlertEventKind
# Told again while nobody says that they work on it.
REMIND_AFTER = {Severity.URGENT: timedelta(hours=1), Severity.WARNING: timedelta(days=1)}
_OUTAGES = frozenset({PROVIDER_OUTAGE, NETWORK_OUTAGE})

# cause, subject, kind, detail
FullKey = tuple[str, str, str, str]


def full_key(finding: Finding) -> FullKey:
    return (finding.cause, finding.subject, finding.kind, finding.detail)


class Evaluation:
    """One evaluation of one team. `since`: the evaluation before."""

    def __init__(
        self,
        book: Book,
        snapshot: Snapshot,
        chosen: Sequence[Chosen],
        judgement: Judgement,
        *,
        policy: EscalationPolicy,
        since: datetime,
    ) -> None:
        self.book, self.snapshot, self.judgement, self.since = book, snapshot, judgement, since
        self.policy = policy
        self.now = book.now
        self.chosen = {one.rule.kind: one for one in chosen}
        self.fires = {full_key(finding): finding for finding in judgement.findings if not finding.keeps}
        self.keeps = {full_key(finding) for finding in judgement.findings if finding.keeps}
        self.powered_off = {machine.pk for machine in snapshot.machines if machine.powered is False}
        self.present = {machine.pk for machine in snapshot.machines}
        # (kind, subject) of what is told as part of an outage.
        self.folded = {(finding.kind, finding.detail) for finding in self.fires.values() if finding.cause in _OUTAGES}

    def run(self) -> None:
        self._take()
        self._release()
        self._pass_time()
        self.book.forget_dismissed({finding.key for finding in self.judgement.findings})

    def _take(self) -> None:
        pending = {
            (row.cause, row.subject, row.kind, row.detail): row
            for row in PendingSignal.objects.filter(team=self.book.team)
        }
        waits: list[PendingSignal] = []
        for key, finding in self.fires.items():
            row = pending.get(key)
            began = self._since(finding) or (row.since if row else self.now)
            if self._is_open(finding) or self.now - began >= self._for(finding.kind):
                self.book.take(finding, since=min(began, self.now), easing=self._easing(finding.kind))
            elif row is None:
                waits.append(_pending(self.book, finding, began))
        opened = [key for key, finding in self.fires.items() if self._is_open(finding)]
        self._write_pending(pending, waits, done=set(opened))

    def _since(self, finding: Finding) -> datetime | None:
        """Clocks differ: what begins in the future began when it was found."""
        return finding.since if finding.since is not None and finding.since <= self.now else None

    def _write_pending(
        self, pending: dict[FullKey, PendingSignal], waits: list[PendingSignal], *, done: set[FullKey]
    ) -> None:
        """Rows go with what opened, and with what fires no more; what is not settled may wait on."""
        over = [
            row.pk
            for key, row in pending.items()
            if key in done or (key not in self.fires and key not in self.keeps and row.kind in self.judgement.judged)
        ]
        if over:
            PendingSignal.objects.filter(pk__in=over).delete()
        PendingSignal.objects.bulk_create(waits, ignore_conflicts=True)

    def _for(self, kind: str) -> timedelta:
        one = self.chosen.get(kind)
        return timedelta(seconds=one.for_seconds) if one else NO_TIME

    def _easing(self, kind: str) -> timedelta:
        """Whoever has just changed the rule wants it so at once."""
        one = self.chosen.get(kind)
        edited = one is not None and one.changed_at is not None and one.changed_at > self.since
        return NO_TIME if edited else EASES_AFTER

    def _is_open(self, finding: Finding) -> bool:
        course = self.book.course(finding.key)
        return course is not None and finding.part in course.signals

    def _release(self) -> None:
        for course in self.book:
            alert = course.alert
            for part in list(course.signals):
                key = (alert.cause, alert.subject, *part)
                if part[0] in self.judgement.judged and key not in self.fires and key not in self.keeps:
                    lasting, why = self._why(course, part)
                    course.release(part, self.now, lasting=lasting, why=why)

    def _why(self, course: Course, part: Part) -> tuple[timedelta, str]:
        """How long the evidence has to last, and what it is."""
        one, alert = self.chosen[part[0]], course.alert
        if not one.enabled:
            return NO_TIME, "rule_off"
        if one.changed_at is not None and one.changed_at > self.since:
            return NO_TIME, "rule_changed"
        if (part[0], alert.subject) in self.folded:
            return NO_TIME, "folded"
        if alert.instance_id in self.powered_off:
            return NO_TIME, "off"
        if alert.instance_id is not None and alert.instance_id not in self.present:
            return NO_TIME, "gone"
        return timedelta(seconds=one.rule.clear_seconds), "evidence"

    def _pass_time(self) -> None:
        for course in self.book:
            alert = course.alert
            self._let_go(course)
            if course.begins or not course.signals:
                continue
            if alert.snoozed_until is not None and alert.snoozed_until <= self.now:
                course.wake(self.now, "time")
            elif alert.announced_at is None and not alert.is_snoozed and not course.is_covered():
                course.note(Kind.WOKE, self.now, why="maintenance")
            self._press(course)

    @cached_property
    def _members(self) -> set[int]:
        """Those who can still answer: an account that was closed does not."""
        members = Membership.objects.filter(team=self.book.team, user__is_active=True)
        return set(members.values_list("user_id", flat=True))

    def _let_go(self, course: Course) -> None:
        """Whoever said that they work on it, or whom it was escalated to, has left."""
        alert = course.alert
        if alert.escalated_to_id is not None and alert.escalated_to_id not in self._members:
            alert.escalated_at = alert.escalated_to = None
            course.changed = True
        if alert.acknowledged_by_id is not None and alert.acknowledged_by_id not in self._members:
            course.let_go()
            course.note(Kind.WOKE, self.now, why="person_left")

    def _press(self, course: Course) -> None:
        """Reminds of what nobody answered to, and escalates it."""
        alert = course.alert
        answered = alert.acknowledged_at is not None or alert.is_snoozed or course.is_covered()
        seems_over = all(signal.clear_since for signal in course.signals.values())
        if answered or seems_over or alert.announced_at is None:
            return
        urgent = alert.severity == Severity.URGENT
        after = self.policy.after
        if urgent and alert.escalated_at is None and after is not None and self._lasts(alert.announced_at, after):
            course.escalate(self.now, self._stand_in, after_minutes=self.policy.after_minutes)
        remind = REMIND_AFTER.get(Severity(alert.severity))
        if remind is not None and self._lasts(alert.reminded_at or alert.announced_at, remind):
            course.note(Kind.REMINDED, self.now)

    @property
    def _stand_in(self) -> User | None:
        """Whom the team has named; not where they have left it."""
        person = self.policy.person
        return person if person is not None and person.pk in self._members else None

    def _lasts(self, since: datetime, at_least: timedelta) -> bool:
        return self.now - since >= at_least


def _pending(book: Book, finding: Finding, since: datetime) -> PendingSignal:
    return PendingSignal(
        team=book.team,
        cause=finding.cause,
        subject=finding.subject,
        kind=finding.kind,
        detail=finding.detail,
        since=since,
    )
