"""What is known to become of machines: planned acts, holds that put them off, leases that end; and what each of it costs at its provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Q

from fleet.costs.forecast.rates import Charged
from fleet.costs.forecast.reckoning.inputs import Machine, Step, Verb
from fleet.costs.forecast.shares import ONE, Key
from fleet.costs.ledger.charges import Rules
from fleet.costs.ledger.intervals import Meter
from fleet.inventory.models import Hold, Instance
from fleet.inventory.plans.models import PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.providers.endings import Part, StopSemantics
from fleet.providers.registry import adapters
from fleet.teams.models import Team

# A stop whose owner was not told does not come.
COMES = (
    Q(state=PlannedActionState.TAKEN)
    | Q(state=PlannedActionState.PLANNED, notified_at__isnull=False)
    | Q(state=PlannedActionState.PLANNED, verb=PlannedActionVerb.START)
)


@dataclass(frozen=True, slots=True)
class Span:
    since: datetime
    until: datetime


# A machine and its known steps.
Ahead = tuple[Instance, tuple[Step, ...]]


def steps_ahead(*, team: Team, span: Span) -> list[Ahead]:
    """Every machine with a known step within the span. Three queries."""
    planned = planned_steps(team, span)
    rows = Instance.objects.filter(
        Q(pk__in=planned) | Q(expires_at__lt=span.until, expires_at__isnull=False), team=team, gone_at=None
    ).select_related("account")
    return [(row, (*planned.get(row.pk, ()), *lease_of(row, span))) for row in rows]


def machines_ahead(
    *, ahead: Sequence[Ahead], charged: Charged, factors: Mapping[str, Decimal], shares: Mapping[Key, Decimal] | None
) -> tuple[list[Machine], int]:
    """What becomes of them, and how many prices nobody told of what comes after a step."""
    runs = {rate.machine: rate.start for _account, rate in charged.rates if rate.meter is Meter.COMPUTE}
    has_disk = {rate.machine for _account, rate in charged.rates if rate.meter is Meter.DISK_RUNNING}
    found, unpriced = [], 0
    for row, steps in ahead:
        share = ONE if shares is None else shares.get((row.account_id, row.pk), Decimal(0))
        factor = factors.get(row.currency)
        machine = machine_of(row, steps, runs.get(row.pk), row.pk in has_disk, factor and factor * share)
        starts = any(step.verb is Verb.START for step in steps)
        unpriced += (machine.on_stop is None) + (starts and machine.started is None)
        if share:
            found.append(machine)
    return found, unpriced


def machine_of(
    row: Instance, steps: Sequence[Step], since: datetime | None, has_disk: bool, factor: Decimal | None
) -> Machine:
    adapter = adapters().get(row.account.kind)
    semantics = adapter.semantics if adapter else StopSemantics(can_stop=True)
    billed = semantics.billed_when_stopped
    return Machine(
        row.pk,
        tuple(steps),
        started=priced(row.price_per_hour, factor),
        on_stop=Decimal(0) if has_disk or not billed else priced(row.storage_price_per_hour, factor),
        stops_charging=Part.COMPUTE not in billed,
        disks_go_on=bool(billed) or adapter is None,
        run_since=since and min(since, row.started_at or since),
        rules=Rules.of(semantics),
    )


def priced(price: Decimal | None, factor: Decimal | None) -> Decimal | None:
    return None if price is None or factor is None else price * factor


def lease_of(row: Instance, span: Span) -> Iterator[Step]:
    if row.expires_at is not None and row.expires_at < span.until:
        yield Step(row.expires_at, Verb.TERMINATE, is_lease=True)


def planned_steps(team: Team, span: Span) -> dict[int, list[Step]]:
    """A hold puts off a stop until it ends; one without an end means that it does not come."""
    actions = list(PlannedAction.objects.filter(COMES, team=team, due_at__lt=span.until))
    held = holds_of([action.instance_id for action in actions], span.since)
    found: dict[int, list[Step]] = {}
    for action in actions:
        verb, at = Verb(action.verb), action.due_at
        if verb is not Verb.START and action.instance_id in held:
            until = held[action.instance_id]
            if until is None:
                continue
            at = max(at, until)
        if at < span.until:
            found.setdefault(action.instance_id, []).append(Step(at, verb))
    return found


def holds_of(machines: Sequence[int], now: datetime) -> dict[int, datetime | None]:
    """Until when machines are held; None = nobody said."""
    in_force = Q(expires_at=None) | Q(expires_at__gt=now)
    found: dict[int, datetime | None] = {}
    for machine, until in Hold.objects.filter(in_force, instance__in=machines, ended_at=None).values_list(
        "instance_id", "expires_at"
    ):
        before = found.get(machine, until)
        found[machine] = None if until is None or before is None else max(before, until)
    return found
