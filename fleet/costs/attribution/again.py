"""The past attributed again, on purpose: who did it, why and what it moved stays on record."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils.translation import gettext_lazy as _

from fleet.costs.attribution.desired import desired_attribution
from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import (
    AttributionRule,
    AttributionSource,
    AttributionSpan,
    Reattribution,
    ShareHour,
    SplitMode,
)
from fleet.costs.attribution.money import Estimate, Whose, cost_by_whose, estimate
from fleet.costs.attribution.reading import Standing, machines_of
from fleet.costs.attribution.rules import check_whose
from fleet.costs.attribution.sync import BATCH, lock_attribution, note_changes
from fleet.costs.book.models import LedgerChange
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team, User

MOST_MACHINES = 5_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What a re-attribution would do: to which machines, and with which money."""

    instances: list[int]
    target: Whose
    estimate: Estimate


def plan_again(
    *,
    team: Team,
    start: datetime,
    until: datetime,
    project: Project | None,
    owner: User | None,
    reason: str,
    now: datetime,
    instances: Collection[int] = (),
    rule: AttributionRule | None = None,
) -> Plan:
    """Asks what `reattribute` with the same would do, and writes nothing. Raises ValidationError as it does."""
    check_again(team=team, start=start, until=until, project=project, owner=owner, reason=reason, now=now)
    found = chosen(team=team, instances=instances, rule=rule, now=now)
    touched = sorted({span.instance_id for span in spans_within(found, start, until)})
    target = (project.pk if project else None, owner.pk if owner else None)
    return Plan(touched, target, estimate(team=team, instances=touched, start=start, until=until, now=now))


@transaction.atomic
def reattribute(
    *,
    actor: Actor,
    team: Team,
    start: datetime,
    until: datetime,
    project: Project | None,
    owner: User | None,
    reason: str,
    now: datetime,
    instances: Collection[int] = (),
    rule: AttributionRule | None = None,
) -> Reattribution:
    """Gives the hours [start, until) of the machines, or of those that `rule` matches, to `project` and `owner` (None: nobody).

    Whole machines: hours that were split are so no more. Raises ValidationError, by field; nothing is written then.
    """
    lock_attribution(team)
    check_again(team=team, start=start, until=until, project=project, owner=owner, reason=reason, now=now)
    found = chosen(team=team, instances=instances, rule=rule, now=now)
    spans = spans_within(found, start, until)
    touched = sorted({span.instance_id for span in spans})
    entry = Reattribution.objects.create(
        team=team,
        rule=rule,
        start=start,
        until=until,
        project=project,
        owner=owner,
        reason=reason,
        created_by=actor.user,
        actor_label=actor.label[:200],
        created_at=now,
        before=cost_by_whose(team=team, instances=touched, start=start, until=until),
    )
    entry.instances.set(touched)
    rewrite(spans, entry)
    note_changes(dict.fromkeys(touched, start))
    record(actor=actor, team=team, action="attribution.again", target=entry, new=told(entry, len(touched)))
    return entry


def check_again(
    *,
    team: Team,
    start: datetime,
    until: datetime,
    project: Project | None,
    owner: User | None,
    reason: str,
    now: datetime,
) -> None:
    """Raises ValidationError, by field."""
    check_whose(team=team, project=project, owner=owner, past=True)
    for name, moment in (("start", start), ("until", until)):
        if moment != hour_of(moment):
            raise ValidationError({name: _("Money is attributed by full hours of UTC: choose one.")})
    if until <= start:
        raise ValidationError({"until": _("It ends before it begins: choose a later end.")})
    if until > hour_of(now):
        raise ValidationError({"until": _("Only hours that are over can be attributed again: choose an earlier end.")})
    if not reason.strip():
        raise ValidationError({"reason": _("Say why, for those who wonder about the figures later.")})


def chosen(*, team: Team, instances: Collection[int], rule: AttributionRule | None, now: datetime) -> list[int]:
    """Machines of the team. Raises ValidationError for none, too many, and for one of another team."""
    found = matched(team, rule, now=now) if rule else sorted(set(instances))
    if rule is None and Instance.objects.filter(team=team, pk__in=found).count() != len(found):
        raise ValidationError({"instances": _("Choose machines of this team.")})
    if not found:
        raise ValidationError({"instances": _("Choose at least one machine, or a rule that matches one.")})
    if len(found) > MOST_MACHINES:
        raise ValidationError({"instances": _("Choose at most %(n)d machines at once.") % {"n": MOST_MACHINES}})
    return found


def matched(team: Team, rule: AttributionRule, *, now: datetime) -> list[int]:
    """Machines that meet the rule's conditions, gone ones too, but those that people gave to somebody themselves."""
    if rule.team_id != team.pk:
        raise ValidationError({"rule": _("Choose a rule of this team.")})
    standing = Standing.of(team)
    conditions = replace(standing.rule(rule), pk=rule.pk)
    machines = machines_of(Instance.objects.filter(team=team), standing, now=now)
    return [one.pk for one in machines if desired_attribution(one, [conditions]).source == AttributionSource.RULE]


def spans_within(instances: Collection[int], start: datetime, until: datetime) -> list[AttributionSpan]:
    """Raises ValidationError where there is none."""
    window = DateTimeTZRange(start, until)
    spans = list(AttributionSpan.objects.filter(instance__in=instances, period__overlap=window).order_by("pk"))
    if not spans:
        raise ValidationError({"until": _("None of these machines was there then: choose other hours.")})
    return spans


def rewrite(spans: Sequence[AttributionSpan], entry: Reattribution) -> None:
    """Cuts the hours out of the spans that had them, and puts new ones there. Jobs and labels stay as they were."""
    made: list[AttributionSpan] = []
    shortened: list[AttributionSpan] = []
    for span in spans:
        again, outside = cut(span, entry)
        made.append(again)
        if outside:
            span.period = outside[-1].period
            shortened.append(span)
            made += outside[:-1]
    kept = {span.pk for span in shortened}
    AttributionSpan.objects.filter(pk__in=[span.pk for span in spans if span.pk not in kept]).delete()
    AttributionSpan.objects.bulk_update(shortened, ["period"], batch_size=BATCH)
    AttributionSpan.objects.bulk_create(made, batch_size=BATCH)
    touched = {span.instance_id for span in spans}
    ShareHour.objects.filter(instance__in=touched, hour__gte=entry.start, hour__lt=entry.until).delete()


def cut(span: AttributionSpan, entry: Reattribution) -> tuple[AttributionSpan, list[AttributionSpan]]:
    """The part of the span within the entry's hours, given away; and what is left of it before and after them."""
    lower, upper = span.period.lower, span.period.upper
    within = (max(lower, entry.start), entry.until if upper is None else min(upper, entry.until))
    again = copy(
        span,
        *within,
        project_id=entry.project_id,
        owner_id=entry.owner_id,
        split=SplitMode.WHOLE,
        source=AttributionSource.AGAIN,
        rule_id=entry.rule_id,
        reattribution=entry,
        note=entry.reason,
        created_by_id=entry.created_by_id,
        created_at=entry.created_at,
    )
    outside = [copy(span, lower, entry.start)] if lower < entry.start else []
    if upper is None or upper > entry.until:
        outside.append(copy(span, entry.until, upper))
    return again, outside


def copy(span: AttributionSpan, start: datetime, end: datetime | None, **changes: Any) -> AttributionSpan:
    values = {
        field.attname: getattr(span, field.attname) for field in span._meta.concrete_fields if not field.primary_key
    }
    made = AttributionSpan(**{**values, "period": DateTimeTZRange(start, end)})
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def told(entry: Reattribution, machines: int) -> dict[str, object]:
    """JSON-ready, for the audit log."""
    return {
        "machines": machines,
        "starts_at": entry.start.isoformat(),
        "until": entry.until.isoformat(),
        "project": str(entry.project or ""),
        "owner": str(entry.owner or ""),
        "reason": entry.reason,
    }


def settle_reattributions(*, team: Team) -> int:
    """Keeps what the days cost after it, once they are summed again. Returns how many are settled now."""
    settled = 0
    for entry in Reattribution.objects.filter(team=team, after__isnull=True).order_by("pk"):
        ids = list(entry.instances.values_list("pk", flat=True))
        if LedgerChange.objects.filter(instance__in=ids, from_at__lt=entry.until).exists():
            continue
        after = cost_by_whose(team=team, instances=ids, start=entry.start, until=entry.until)
        settled += Reattribution.objects.filter(pk=entry.pk, after__isnull=True).update(after=after)
    return settled
