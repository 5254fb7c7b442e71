"""Stored rows made into what they should be: only what differs is touched, and whoever sums days is told from when on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.book.entries import Entry, Stored
from fleet.costs.book.fold import Folded
from fleet.costs.book.models import LedgerChange, LedgerInterval, LedgerMeter, LedgerProgress

BATCH = 2_000
VALUES = (
    "unit",
    "unit_price",
    "quantity",
    "currency",
    "market",
    "price_source",
    "seen_at",
    "start_source",
    "start_half_width_seconds",
    "end_half_width_seconds",
    "run",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one machine: `stored` is there and should be `made`; None on one side: should not be there, is not there."""

    instance_id: int
    stored: Stored | None
    made: Entry | None

    @property
    def from_at(self) -> datetime:
        """From when on sums are not what they should be."""
        if self.stored and self.made and same_but_end(self.stored.entry, self.made):
            ends = [one for one in (self.stored.entry.end, self.made.end) if one is not None]
            return min(ends, default=self.made.start)
        stored = self.stored.entry if self.stored else None
        return min(one.start for one in (stored, self.made) if one is not None)


def same_but_end(one: Entry, other: Entry) -> bool:
    names = set(Entry.__slots__) - {"end", "end_half_width_seconds"}
    return all(getattr(one, name) == getattr(other, name) for name in names)


def differences_of(folded: Folded) -> list[Difference]:
    stored = {one.entry.place: one for one in folded.machine.stored}
    made = {one.place: one for one in folded.entries}
    pk = folded.machine.instance_id
    surplus = [Difference(pk, one, None) for place, one in stored.items() if place not in made]
    return surplus + [
        Difference(pk, stored.get(place), entry)
        for place, entry in made.items()
        if place not in stored or stored[place].entry != entry
    ]


@dataclass(slots=True)
class Written:
    """How many rows there are to touch, by what becomes of them."""

    deleted: list[int] = field(default_factory=list)
    changed: list[tuple[int, Entry]] = field(default_factory=list)
    added: list[tuple[int, Entry]] = field(default_factory=list)

    def note(self, one: Difference) -> None:
        if one.made is None:
            assert one.stored is not None
            self.deleted.append(one.stored.pk)
        elif one.stored is None:
            self.added.append((one.instance_id, one.made))
        else:
            self.changed.append((one.stored.pk, one.made))


def write_ledgers(ledgers: Sequence[Folded]) -> list[Difference]:
    """Within a transaction. The number of queries does not grow with the machines, but for batches of thousands of rows."""
    found = [one for folded in ledgers for one in differences_of(folded)]
    written = Written()
    for one in found:
        written.note(one)
    # What goes makes room before what stays grows: no two intervals of a meter overlap, not even for a moment.
    LedgerInterval.objects.filter(pk__in=written.deleted).delete()
    change_rows(written.changed)
    add_rows(ledgers, written.added)
    tell_changes(ledgers, found)
    keep_progress(ledgers)
    return found


def change_rows(changed: Sequence[tuple[int, Entry]]) -> None:
    rows = [LedgerInterval(pk=pk, **columns(entry)) for pk, entry in changed]
    LedgerInterval.objects.bulk_update(rows, ["period", *VALUES], batch_size=BATCH)


def add_rows(ledgers: Iterable[Folded], added: Sequence[tuple[int, Entry]]) -> None:
    meters = meter_ids(ledgers, {(pk, entry.kind, entry.resource) for pk, entry in added})
    rows = [LedgerInterval(meter_id=meters[pk, entry.kind, entry.resource], **columns(entry)) for pk, entry in added]
    LedgerInterval.objects.bulk_create(rows, batch_size=BATCH)


def meter_ids(ledgers: Iterable[Folded], keys: set[tuple[int, str, str]]) -> dict[tuple[int, str, str], int]:
    """Of (machine, kind, resource); those that were not there are made."""
    machines = {folded.machine.instance_id: folded.machine for folded in ledgers}
    known = LedgerMeter.objects.filter(
        instance__in={pk for pk, _, _ in keys},
        kind__in={kind for _, kind, _ in keys},
        resource__in={resource for _, _, resource in keys},
    )
    found = {(row.instance_id or 0, row.kind, row.resource): row.pk for row in known}
    fresh = [
        LedgerMeter(
            team_id=machines[pk].team_id,
            account_id=machines[pk].account_id,
            instance_id=pk,
            kind=kind,
            resource=resource,
        )
        for pk, kind, resource in sorted(keys - set(found))
    ]
    made = LedgerMeter.objects.bulk_create(fresh, batch_size=BATCH)
    return found | {(row.instance_id or 0, row.kind, row.resource): row.pk for row in made}


def columns(entry: Entry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in VALUES} | {"period": DateTimeTZRange(entry.start, entry.end)}


def tell_changes(ledgers: Iterable[Folded], found: Iterable[Difference]) -> None:
    since: dict[int, datetime] = {}
    for one in found:
        since[one.instance_id] = min(one.from_at, since.get(one.instance_id, one.from_at))
    machines = {folded.machine.instance_id: folded.machine for folded in ledgers}
    LedgerChange.objects.bulk_create(
        [
            LedgerChange(account_id=machines[pk].account_id, instance_id=pk, from_at=from_at)
            for pk, from_at in since.items()
        ],
        batch_size=BATCH,
    )


def keep_progress(ledgers: Iterable[Folded]) -> None:
    rows = [progress_of(folded) for folded in ledgers if folded.machine.rows]
    LedgerProgress.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["instance"],
        update_fields=["observation_id", "until"],
    )


def progress_of(folded: Folded) -> LedgerProgress:
    machine = folded.machine
    return LedgerProgress(
        instance_id=machine.instance_id,
        first_observation_id=machine.progress.first_observation_id if machine.progress else machine.rows[0].pk,
        observation_id=machine.rows[-1].pk,
        until=folded.until,
    )
