"""What is read of machines before their ledger is made: set by set, with the same number of queries however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from fleet.costs.book.entries import BUILT, Stored, interval_of, stored_of
from fleet.costs.book.models import LedgerInterval, LedgerProgress
from fleet.costs.ledger.charges import Rules
from fleet.costs.ledger.intervals import Interval, Meter
from fleet.inventory.models import Instance, Observation
from fleet.providers.endings import StopSemantics
from fleet.providers.registry import adapters

MANUAL = "manual"

# From the last row on that a list showed and that is in the ledger; from the first on where there is none.
_NEWEST = """\
SELECT o.* FROM unnest(%(ids)s::bigint[]) i(id)
LEFT JOIN ledger_progress p ON p.instance_id = i.id
LEFT JOIN LATERAL (SELECT a.id FROM fleet_observation a
    WHERE a.instance_id = i.id AND a.id <= p.observation_id AND a.listed ORDER BY a.id DESC LIMIT 1) anchor ON true
JOIN fleet_observation o ON o.instance_id = i.id AND o.id >= coalesce(anchor.id, 0)
ORDER BY o.instance_id, o.id
"""

# The last part of each run that goes on, and how long all of its parts were: a minimum is of the whole run.
_EARLIER = """\
SELECT DISTINCT ON (m.instance_id) l.id, m.instance_id, sum(extract(epoch FROM upper(l.period) - lower(l.period)))
    OVER (PARTITION BY m.instance_id)::bigint AS seconds
FROM unnest(%(ids)s::bigint[], %(runs)s::int[]) i(id, run)
JOIN ledger_meter m ON m.instance_id = i.id AND m.kind = %(compute)s AND m.resource = ''
JOIN ledger_interval l ON l.meter_id = m.id AND l.run = i.run AND NOT upper_inf(l.period)
ORDER BY m.instance_id, l.period DESC
"""


# A machine of an account that was disconnected and connected again is listed anew: what it cost until then stands in the old account.
_COUNTED_UNTIL = """\
SELECT i.id, max(other.disconnected_at) FROM fleet_instance i JOIN fleet_provideraccount a ON a.id = i.account_id
JOIN fleet_provideraccount other ON other.team_id = i.team_id AND other.kind = a.kind AND other.disconnected_at <= i.first_seen_at
JOIN fleet_instance twin ON twin.account_id = other.id AND twin.region = i.region AND twin.external_id = i.external_id AND twin.id <> i.id
WHERE i.id = ANY(%(ids)s) GROUP BY i.id
"""


@dataclass(slots=True)
class Machine:
    """One machine and what its ledger holds. `rows`: of the log, in the order in which they were written."""

    instance_id: int
    account_id: int
    team_id: int
    kind: str
    has_history: bool = False
    # Before this it was counted as a machine of another account.
    counted_until: datetime | None = None
    progress: LedgerProgress | None = None
    rows: list[Observation] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    # What the run that goes on was charged for before its open interval, as one.
    earlier: Interval | None = None

    @property
    def name(self) -> str:
        return str(self.instance_id)

    @property
    def is_typed(self) -> bool:
        return self.kind == MANUAL

    @property
    def semantics(self) -> StopSemantics | None:
        """None for an adapter that is no longer there."""
        adapter = adapters().get(self.kind)
        return adapter.semantics if adapter else None

    @property
    def rules(self) -> Rules:
        return Rules.of(self.semantics) if self.semantics else Rules()

    @property
    def rate_has_disks(self) -> bool:
        return self.semantics is None or self.semantics.rate_has_disks

    @property
    def open_run(self) -> int | None:
        """The number of the run that goes on."""
        runs = [one.entry.run for one in self.stored if one.entry.kind == Meter.COMPUTE and one.entry.end is None]
        return runs[0] if runs else None


def read_machines(ids: Collection[int]) -> dict[int, Machine]:
    closed = LedgerInterval.objects.filter(
        meter__instance=OuterRef("pk"), meter__kind__in=BUILT, period__upper_inf=False
    )
    rows = Instance.objects.filter(pk__in=ids).annotate(has_history=Exists(closed)).order_by("pk")
    found = rows.values_list("pk", "account_id", "team_id", "account__kind", "has_history")
    machines = {pk: Machine(pk, account, team, kind, has_history) for pk, account, team, kind, has_history in found}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED_UNTIL, {"ids": list(ids)})
        for pk, until in cursor.fetchall():
            machines[pk].counted_until = until
    for progress in LedgerProgress.objects.filter(instance__in=ids):
        machines[progress.instance_id].progress = progress
    return machines


def read_newest(machines: Mapping[int, Machine]) -> None:
    """Fills in what a build goes on from: new rows after the last one that counts, and what is open."""
    for row in Observation.objects.raw(_NEWEST, {"ids": list(machines)}):
        machines[row.instance_id].rows.append(row)
    _read_stored(machines, Q(period__upper_inf=True))
    _read_earlier([one for one in machines.values() if one.open_run is not None and has_minimum(one.rules)])


def read_everything(machines: Mapping[int, Machine]) -> None:
    """Fills in all rows of the log that are kept, and all intervals made from any."""
    for one in machines.values():
        one.rows, one.stored, one.earlier = [], [], None
    for row in Observation.objects.filter(instance__in=machines).order_by("instance_id", "id"):
        machines[row.instance_id].rows.append(row)
    _read_stored(machines, Q())


def has_minimum(rules: Rules) -> bool:
    return rules.quantum_seconds > 1 or rules.minimum_seconds > 0


def _read_stored(machines: Mapping[int, Machine], which: Q) -> None:
    rows = LedgerInterval.objects.filter(which, meter__instance__in=machines, meter__kind__in=BUILT)
    for row in rows.select_related("meter").order_by("pk"):
        assert row.meter.instance_id is not None
        machines[row.meter.instance_id].stored.append(stored_of(row))


def _read_earlier(machines: Sequence[Machine]) -> None:
    if not machines:
        return
    runs = {one.instance_id: one for one in machines}
    values: dict[str, Any] = {
        "ids": list(runs),
        "runs": [one.open_run for one in machines],
        "compute": Meter.COMPUTE.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(_EARLIER, values)
        found = cursor.fetchall()
    seconds: dict[int, tuple[int, int]] = defaultdict(
        lambda: (0, 0), {pk: (owner, total) for pk, owner, total in found}
    )
    for row in LedgerInterval.objects.filter(pk__in=seconds).select_related("meter"):
        owner, total = seconds[row.pk]
        machine = runs[owner]
        last = interval_of(machine.name, stored_of(row).entry)
        machine.earlier = spread(last, total)


def spread(last: Interval, seconds: int) -> Interval:
    """`last`, begun so early that it is `seconds` long."""
    assert last.end is not None
    return replace(last, start=last.end - timedelta(seconds=seconds))


def first_kept(machine: Machine) -> datetime | None:
    """When the oldest row was seen, where older ones that the ledger was made from are no longer kept."""
    if machine.progress is None or not machine.rows or machine.rows[0].pk <= machine.progress.first_observation_id:
        return None
    return machine.rows[0].seen_at
