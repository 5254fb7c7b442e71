"""Spans follow what people set and what the rules say: from the full hour of the change on. What was, stays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Func, QuerySet

from fleet.costs.attribution.desired import Attribution, desired_attribution
from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.attribution.reading import Standing, first_hours, machines_of, rules_in_force, to_look_at
from fleet.costs.book.models import LedgerChange
from fleet.inventory.models import Instance
from fleet.teams.models import Team

BATCH = 1_000
DECIDED = ("project_id", "owner_id", "job", "labels", "split", "source", "rule_id")


@transaction.atomic
def sync_attribution(*, team: Team, now: datetime, instances: Collection[int] | None = None) -> int:
    """Lets the spans of the team's machines (or of `instances` alone) say what is desired now. Returns how many machines changed hands."""
    lock_attribution(team)
    standing = Standing.of(team)
    rules = [standing.rule(row) for row in rules_in_force(team)]
    machines = machines_of(to_look_at(team, instances), standing, now=now)
    present = open_spans([machine.pk for machine in machines])
    wanted = {machine.pk: desired_attribution(machine, rules) for machine in machines}
    changed = {pk: one for pk, one in wanted.items() if pk not in present or money_of(present[pk]) != one.money}
    write_spans(changed, present, now=now)
    return len(changed)


def lock_attribution(team: Team) -> None:
    """Until the transaction ends nobody else writes spans or rules of the team. The team's own name may change meanwhile."""
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)


def open_spans(instances: Sequence[int]) -> dict[int, AttributionSpan]:
    rows = AttributionSpan.objects.filter(instance__in=instances, period__upper_inf=True)
    return {row.instance_id: row for row in rows}


def money_of(span: AttributionSpan) -> tuple[object, ...]:
    return span.project_id, span.owner_id, span.job, span.labels, span.split


def write_spans(wanted: Mapping[int, Attribution], present: Mapping[int, AttributionSpan], *, now: datetime) -> None:
    """A span that began within this very hour is rewritten; an older one ends with the hour before."""
    hour = hour_of(now)
    fresh = first_hours([pk for pk in wanted if pk not in present])
    kept = [span for pk, span in present.items() if pk in wanted and span.period.lower >= hour]
    ended = [present[pk].pk for pk in wanted if pk in present and present[pk].period.lower < hour]
    for span in kept:
        decide(span, wanted[span.instance_id])
    AttributionSpan.objects.bulk_update(kept, [*DECIDED, "reattribution_id", "note"], batch_size=BATCH)
    end_spans(AttributionSpan.objects.filter(pk__in=ended), at=hour)
    rewritten = {span.instance_id for span in kept}
    begin_spans({pk: one for pk, one in wanted.items() if pk not in rewritten}, fresh, otherwise=hour, now=now)
    note_changes({pk: fresh.get(pk, hour) for pk in wanted})


def decide(span: AttributionSpan, one: Attribution) -> None:
    for name in DECIDED:
        setattr(span, name, getattr(one, name))
    span.reattribution_id, span.note = None, ""


def end_spans(spans: QuerySet[AttributionSpan], *, at: datetime) -> None:
    spans.update(period=Func(Func("period", function="lower"), at, function="tstzrange"))


def begin_spans(
    wanted: Mapping[int, Attribution], starts: Mapping[int, datetime], *, otherwise: datetime, now: datetime
) -> None:
    AttributionSpan.objects.bulk_create(
        [
            AttributionSpan(
                instance_id=pk,
                period=DateTimeTZRange(starts.get(pk, otherwise), None),
                created_at=now,
                **{name: getattr(one, name) for name in DECIDED},
            )
            for pk, one in wanted.items()
        ],
        batch_size=BATCH,
    )


def note_changes(since: Mapping[int, datetime]) -> None:
    """The daily sums of these machines are to be made again from these moments on."""
    accounts = dict(Instance.objects.filter(pk__in=since).values_list("pk", "account_id"))
    LedgerChange.objects.bulk_create(
        [LedgerChange(account_id=accounts[pk], instance_id=pk, from_at=moment) for pk, moment in since.items()],
        batch_size=BATCH,
    )
