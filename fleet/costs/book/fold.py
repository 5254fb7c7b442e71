"""From what was read of a machine to the entries that its ledger should hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.costs.book.entries import Entry, Stored, entry_of, interval_of
from fleet.costs.book.machines import Machine, first_kept
from fleet.costs.book.seen import sightings_of
from fleet.costs.ledger.charges import with_minimums
from fleet.costs.ledger.intervals import Interval, MachineLedger, Meter, meters_of
from fleet.costs.ledger.sightings import Sighting
from fleet.inventory.models import Observation


@dataclass(frozen=True, slots=True)
class Folded:
    """`entries` take the place of the `stored` ones that were read. `until`: when the last sighting was that counts."""

    machine: Machine
    entries: list[Entry]
    until: datetime | None


def continue_ledger(machine: Machine) -> Folded | None:
    """From the open intervals on. None: what was counted does not count any more, as when a machine that was gone is listed again."""
    done = machine.progress.observation_id if machine.progress else 0
    before = look(machine, [row for row in machine.rows if row.pk <= done])
    sightings = look(machine, machine.rows)
    if sightings[: len(before)] != before or (before and not machine.stored):
        return None
    ledger = MachineLedger(machine.name, has_history=machine.has_history)
    until = machine.progress.until if machine.progress else None
    if before:
        assert until is not None
        resume(ledger, machine.stored, replace(before[-1], seen_at=until))
    if machine.earlier:
        ledger.closed.append(machine.earlier)
    return fold(machine, ledger, sightings[len(before) :])


def make_ledger(machine: Machine) -> Folded:
    """From all rows that are kept. What lies before them stays as it is stored."""
    sightings = look(machine, machine.rows)
    ledger = MachineLedger(machine.name)
    if first_kept(machine) is None:
        return fold(machine, ledger, sightings)
    stays = keep_older(ledger, machine, sightings[0])
    made = fold(machine, ledger, sightings[1:])
    return replace(made, entries=[*stays, *made.entries])


def keep_older(ledger: MachineLedger, machine: Machine, first: Sighting) -> list[Entry]:
    """Resumes `ledger` as it was once `first` was counted. Returns the minimums of runs that had ended by then."""
    older = sorted(
        (one for one in machine.stored if one.entry.seen_at <= first.seen_at), key=lambda one: one.entry.start
    )
    newest = {one.entry.kind: one for one in older if Meter(one.entry.kind) in meters_of(first)}
    resume(
        ledger,
        (Stored(one.pk, replace(one.entry, end=None, end_half_width_seconds=0)) for one in newest.values()),
        first,
    )
    running = ledger.run if Meter.COMPUTE in ledger.open else None
    ended = [one.entry for one in older if one.entry.kind != Meter.MINIMUM and one not in newest.values()]
    ledger.closed += [interval_of(machine.name, entry) for entry in ended if entry.run == running]
    ledger.has_history = bool(ended)
    minimums = [one.entry for one in older if one.entry.kind == Meter.MINIMUM and one.entry.run != running]
    return minimums + [entry for entry in ended if entry.run != running]


def look(machine: Machine, rows: Sequence[Observation]) -> list[Sighting]:
    return sightings_of(
        rows, machine=machine.name, rate_has_disks=machine.rate_has_disks, counted_until=machine.counted_until
    )


def resume(ledger: MachineLedger, stored: Iterable[Stored], last: Sighting) -> None:
    ledger.open = {Meter(one.entry.kind): interval_of(ledger.machine, one.entry) for one in stored}
    ledger.run = max((one.run for one in ledger.open.values()), default=0)
    ledger.last = last


def fold(machine: Machine, ledger: MachineLedger, sightings: Iterable[Sighting]) -> Folded:
    for seen in sightings:
        floor = ledger.last.seen_at if ledger.last else seen.seen_at
        ledger.see(replace(seen, seen_at=max(seen.seen_at, floor)))
    found: Iterable[Interval] = with_minimums(ledger.intervals(), machine.rules)
    entries = [entry_of(one, typed=machine.is_typed) for one in found if one is not machine.earlier]
    return Folded(machine, entries, ledger.last.seen_at if ledger.last else None)
