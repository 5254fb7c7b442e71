"""The stays of jobs on machines, with the ledger's prices and the holds beside them. Three queries, however many attempts there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Q
from django.db.models.functions import Least

from fleet.costs.attribution.models import AttributionSpan, SplitMode
from fleet.costs.attribution.shares import Held
from fleet.costs.book.entries import interval_of, stored_of
from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.intervals import Interval, Meter, Price, Unit
from fleet.inventory.models import Hold, HoldKind, Instance
from fleet.inventory.prices import price_now
from jobs.book.models import Attempt, Node
from jobs.spending.reckoning import Stay


@dataclass(frozen=True, slots=True)
class Counted:
    """One machine of one attempt. `is_listing`: the ledger has nothing of it, and the price is what its provider lists now."""

    attempt_id: int
    stay: Stay
    intervals: Sequence[Interval]
    is_listing: bool


@dataclass(frozen=True, slots=True)
class Beside:
    """A hold of any kind on a machine."""

    kind: str
    held: Held


def counted(attempts: Sequence[Attempt], *, now: datetime) -> Iterator[Counted]:
    """`attempts` with their nodes, and these with their holds and machines, prefetched: `with_machines`."""
    nodes = [(attempt, node) for attempt in attempts for node in attempt.nodes.all()]
    if not nodes:
        return
    machines = sorted({node.instance_id for _attempt, node in nodes})
    start = min(attempt.created_at for attempt in attempts)
    end = max(start, *(attempt.ended_at or now for attempt in attempts))
    intervals = _intervals(machines, start, end)
    holds, split = _holds(machines, start, end), _split(machines, start, end)
    for attempt, node in nodes:
        kinds = set(HoldKind.values) if node.instance_id in split else {HoldKind.JOB.value}
        stay = _stay(attempt, node, [one.held for one in holds[node.instance_id] if one.kind in kinds])
        until = attempt.ended_at or now
        known = [
            one
            for one in intervals[node.instance_id]
            if one.start < until and (one.end is None or one.end > attempt.created_at)
        ]
        yield Counted(attempt.pk, stay, known or [_listed(node.instance, attempt)], not known)


def _stay(attempt: Attempt, node: Node, beside: Iterable[Held]) -> Stay:
    """Its machines are held from the first moment of an attempt until its end. Of its own hold, the attempt's times count."""
    key = str(node.hold_id or f"node {node.pk}")
    owner = node.hold.owner_id if node.hold else None
    own = Held(owner, key, attempt.created_at, attempt.ended_at)
    return Stay(own, tuple(held for held in beside if held.job != key))


def _listed(instance: Instance, attempt: Attempt) -> Interval:
    price = Price(Unit.HOUR, price_now(instance), Decimal(1), instance.currency)
    return Interval(str(instance.pk), Meter.COMPUTE, price, attempt.created_at, attempt.ended_at)


def _intervals(machines: Sequence[int], start: datetime, end: datetime) -> dict[int, list[Interval]]:
    rows = LedgerInterval.objects.filter(meter__instance__in=machines, period__overlap=DateTimeTZRange(start, end))
    found: dict[int, list[Interval]] = defaultdict(list)
    for row in rows.select_related("meter").order_by("meter", "period"):
        machine = row.meter.instance_id
        assert machine is not None
        found[machine].append(interval_of(str(machine), stored_of(row).entry))
    return found


def _holds(machines: Sequence[int], start: datetime, end: datetime) -> dict[int, list[Beside]]:
    """Each by its own number: two jobs of one name are two."""
    rows = Hold.objects.filter(instance__in=machines, started_at__lt=end).annotate(end=Least("ended_at", "expires_at"))
    found: dict[int, list[Beside]] = defaultdict(list)
    for hold in rows.filter(Q(end=None) | Q(end__gt=start)):
        name = str(hold.pk) if hold.kind == HoldKind.JOB else ""
        found[hold.instance_id].append(Beside(hold.kind, Held(hold.owner_id, name, hold.started_at, hold.end)))
    return found


def _split(machines: Sequence[int], start: datetime, end: datetime) -> set[int]:
    """Machines that are divided among those who hold them: there a person's hold takes its part too."""
    spans = AttributionSpan.objects.filter(instance__in=machines, period__overlap=DateTimeTZRange(start, end))
    return set(spans.exclude(split=SplitMode.WHOLE).values_list("instance_id", flat=True))
