"""What the rules look at, read for many machines at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Least

from fleet.costs.attribution.desired import Machine, Rule
from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import JOB_LENGTH, AttributionRule, AttributionSpan, MachineSplit
from fleet.inventory.models import Hold, HoldKind, Instance
from fleet.teams.models import Membership, Project, Team


@dataclass(frozen=True, slots=True)
class Standing:
    """Who may own something in the team, and which projects take new machines. Whoever left owns nothing from then on."""

    members: frozenset[int]
    projects: frozenset[int]

    @classmethod
    def of(cls, team: Team) -> Standing:
        return cls(
            frozenset(Membership.objects.filter(team=team).values_list("user_id", flat=True)),
            frozenset(Project.objects.filter(team=team, archived_at=None).values_list("pk", flat=True)),
        )

    def member(self, user_id: int | None) -> int | None:
        return user_id if user_id in self.members else None

    def open_project(self, project_id: int | None) -> int | None:
        return project_id if project_id in self.projects else None

    def rule(self, row: AttributionRule) -> Rule:
        """As it works now: it gives nothing to a project that is archived, or to a person who left."""
        return Rule(
            pk=row.pk,
            name_pattern=row.name_pattern,
            account_id=row.account_id,
            label_key=row.label_key,
            label_value=row.label_value,
            project_id=self.open_project(row.project_id),
            owner_id=self.member(row.owner_id),
            labels=row.labels,
            split=row.split,
        )


def rules_in_force(team: Team) -> QuerySet[AttributionRule]:
    return AttributionRule.objects.filter(team=team, ended_at=None).order_by("order")


def to_look_at(team: Team, only: Collection[int] | None = None) -> QuerySet[Instance]:
    """Machines of the team that are there, and those of its past that never had an hour attributed."""
    spans = AttributionSpan.objects.filter(instance=OuterRef("pk"))
    rows = Instance.objects.filter(team=team).filter(Q(gone_at=None) | ~Exists(spans))
    return rows if only is None else rows.filter(pk__in=only)


def machines_of(rows: QuerySet[Instance], standing: Standing, *, now: datetime) -> list[Machine]:
    """A machine that is of an archived project stays there: it was put there by somebody."""
    found = list(rows.values_list("pk", "name", "account_id", "project_id", "owner_id", "labels", "provider_labels"))
    ids = [row[0] for row in found]
    splits = dict(MachineSplit.objects.filter(instance__in=ids).values_list("instance_id", "split"))
    jobs = jobs_on(ids, now=now)
    return [
        Machine(
            pk, name, account, project, standing.member(owner), labels, theirs, splits.get(pk, ""), jobs.get(pk, "")
        )
        for pk, name, account, project, owner, labels, theirs in found
    ]


def jobs_on(instances: Iterable[int], *, now: datetime) -> dict[int, str]:
    """What jobs keep machines busy: the one that has been there longest, else the last that ended within this hour.

    A job that began and ended between two hours would leave no trace otherwise.
    """
    holds = Hold.objects.filter(instance__in=list(instances), kind=HoldKind.JOB, started_at__lte=now)
    alive = holds.annotate(end=Least("ended_at", "expires_at")).filter(Q(end=None) | Q(end__gt=hour_of(now)))
    jobs: dict[int, tuple[bool, datetime, str]] = {}
    for instance, reason, started, end in alive.order_by("pk").values_list(
        "instance_id", "reason", "started_at", "end"
    ):
        over = end is not None and end <= now
        rank = (not over, end if over else started, reason[:JOB_LENGTH])
        jobs[instance] = _weightier(jobs.get(instance), rank)
    return {instance: job for instance, (_, _, job) in jobs.items()}


def _weightier(one: tuple[bool, datetime, str] | None, other: tuple[bool, datetime, str]) -> tuple[bool, datetime, str]:
    if one is None or one[0] != other[0]:
        return other if one is None or other[0] else one
    still_there = one[0]
    return min(one, other) if still_there else max(one, other)


def first_hours(instances: Collection[int]) -> dict[int, datetime]:
    """The hour in which each machine begins: as its provider says, or when it was first seen."""
    rows = Instance.objects.filter(pk__in=instances)
    began = rows.annotate(began=Least("provider_created_at", "started_at", "first_seen_at"))
    return {pk: hour_of(moment) for pk, moment in began.values_list("pk", "began")}
