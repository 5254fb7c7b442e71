"""The hours of split machines become shares once they are over, and stay so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Least

from fleet.costs.attribution.hours import HOUR, hour_of, hours_between
from fleet.costs.attribution.models import (
    JOB_LENGTH,
    AttributionSpan,
    MeasuredHour,
    ShareHour,
    ShareProgress,
    SplitMode,
    UnixUse,
    UnixUser,
)
from fleet.costs.attribution.shares import Held, held_shares, measured_shares, rounded
from fleet.costs.attribution.sync import BATCH, lock_attribution, note_changes
from fleet.inventory.models import Hold, HoldKind, Instance
from fleet.teams.models import Team

# Project, owner and job of a share; no project: the machine's own.
Whose = tuple[int | None, int | None, str]
NOBODY: Whose = (None, None, "")
Hour = tuple[int, datetime]


@dataclass(slots=True)
class Facts:
    """What divides the hours of some machines."""

    holds: dict[int, list[Held]] = field(default_factory=dict)
    lives: dict[int, tuple[datetime, datetime | None]] = field(default_factory=dict)
    used: dict[Hour, dict[str, float]] = field(default_factory=dict)
    looked_at: dict[Hour, float] = field(default_factory=dict)
    people: dict[tuple[int | None, str], tuple[int | None, int | None]] = field(default_factory=dict)

    def shares(self, machine: int, hour: datetime, split: str) -> Mapping[Whose, Fraction]:
        return self._held(machine, hour) if split == SplitMode.HOLDS else self._measured(machine, hour)

    def _held(self, machine: int, hour: datetime) -> dict[Whose, Fraction]:
        began, gone = self.lives[machine]
        start, end = max(hour, began), min(hour + HOUR, gone or hour + HOUR)
        if end <= start:
            return {}
        parts = held_shares(self.holds.get(machine, []), start, end)
        return {(None, owner, job): part for (owner, job), part in parts.items()}

    def _measured(self, machine: int, hour: datetime) -> dict[Whose, Fraction]:
        """An hour in which nobody looked is nobody's: that it was idle is not known."""
        looked_at = self.looked_at.get((machine, hour), 0.0)
        if looked_at <= 0:
            return {NOBODY: Fraction(1)}
        seconds: dict[Whose, float] = defaultdict(float)
        for user, used in self.used.get((machine, hour), {}).items():
            seconds[self._person(machine, user)] += used
        return measured_shares(seconds, looked_at)

    def _person(self, machine: int, user: str) -> Whose:
        """What is said for this machine hides what is said for all."""
        project, owner = self.people.get((machine, user)) or self.people.get((None, user)) or (None, None)
        return project, owner, ""


@transaction.atomic
def divide_hours(*, team: Team, now: datetime) -> int:
    """Writes the shares of all hours that are over and were not divided yet. Returns how many hours of machines that were."""
    lock_attribution(team)
    until = hour_of(now)
    hours = [(span, list(hours_left(span, until))) for span in spans_to_divide(team, until)]
    wanted = [(span, hour) for span, left in hours for hour in left]
    if wanted:
        facts = facts_of(team, [(span.instance_id, hour) for span, hour in wanted])
        keep_shares(wanted, facts, until=until)
    return len(wanted)


def spans_to_divide(team: Team, until: datetime) -> list[AttributionSpan]:
    progress = ShareProgress.objects.filter(instance=OuterRef("instance_id")).values("until")
    rows = AttributionSpan.objects.filter(instance__team=team, period__startswith__lt=until).exclude(
        split=SplitMode.WHOLE
    )
    undone = Q(done=None) | Q(period__upper_inf=True, done__lt=until) | Q(period__endswith__gt=F("done"))
    return list(rows.annotate(done=Subquery(progress)).filter(undone))


def hours_left(span: AttributionSpan, until: datetime) -> Iterable[datetime]:
    done: datetime | None = span.done  # type: ignore[attr-defined]  # annotated
    upper = span.period.upper
    return hours_between(max(span.period.lower, done or span.period.lower), min(upper or until, until))


def facts_of(team: Team, hours: Sequence[Hour]) -> Facts:
    machines = sorted({machine for machine, _hour in hours})
    start, end = min(hour for _, hour in hours), max(hour for _, hour in hours) + HOUR
    facts = Facts(holds=holds_of(machines, start, end), lives=lives_of(machines))
    measured = {"instance__in": machines, "hour__gte": start, "hour__lt": end}
    looked = MeasuredHour.objects.filter(**measured).values_list("instance_id", "hour", "gpu_seconds")
    facts.looked_at = {(machine, hour): seconds for machine, hour, seconds in looked}
    for machine, hour, user, seconds in UnixUse.objects.filter(**measured).values_list(
        "instance_id", "hour", "unix_user", "gpu_seconds"
    ):
        facts.used.setdefault((machine, hour), {})[user] = seconds
    people = UnixUser.objects.filter(team=team).values_list("instance_id", "name", "project_id", "owner_id")
    facts.people = {(machine, name): (project, owner) for machine, name, project, owner in people}
    return facts


def holds_of(machines: Sequence[int], start: datetime, end: datetime) -> dict[int, list[Held]]:
    rows = Hold.objects.filter(instance__in=machines, started_at__lt=end).annotate(end=Least("ended_at", "expires_at"))
    found: dict[int, list[Held]] = defaultdict(list)
    for hold in rows.filter(Q(end=None) | Q(end__gt=start)):
        job = hold.reason[:JOB_LENGTH] if hold.kind == HoldKind.JOB else ""
        found[hold.instance_id].append(Held(hold.owner_id, job, hold.started_at, hold.end))
    return found


def lives_of(machines: Sequence[int]) -> dict[int, tuple[datetime, datetime | None]]:
    rows = Instance.objects.filter(pk__in=machines).annotate(
        began=Least("provider_created_at", "started_at", "first_seen_at")
    )
    return {pk: (began, gone) for pk, began, gone in rows.values_list("pk", "began", "gone_at")}


def keep_shares(wanted: Sequence[tuple[AttributionSpan, datetime]], facts: Facts, *, until: datetime) -> None:
    made = [
        ShareHour(instance_id=span.instance_id, hour=hour, project_id=project, owner_id=owner, job=job, share=share)
        for span, hour in wanted
        for (project, owner, job), share in rounded(facts.shares(span.instance_id, hour, span.split)).items()
    ]
    firsts: dict[int, datetime] = {}
    for span, hour in wanted:
        firsts[span.instance_id] = min(hour, firsts.get(span.instance_id, hour))
    ShareHour.objects.bulk_create(made, batch_size=BATCH)
    ShareProgress.objects.bulk_create(
        [ShareProgress(instance_id=machine, until=until) for machine in firsts],
        update_conflicts=True,
        unique_fields=["instance"],
        update_fields=["until"],
    )
    note_changes(firsts)
