"""Building the ledger: what listings showed since the last time becomes intervals. Rebuilding it: from everything they ever showed.

Every batch is one transaction, which a crash undoes and the next run repeats. Two workers take turns: who does not get the lock has
nothing to do.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from django.db import connection, transaction

from fleet.costs.book.fold import Folded, continue_ledger, make_ledger
from fleet.costs.book.machines import Machine, read_everything, read_machines, read_newest
from fleet.costs.book.models import LedgerBuild
from fleet.costs.book.write import Difference, differences_of, write_ledgers

LOCK = 7_305_412_071
MACHINES_AT_ONCE = 1_000
# Rebuilding reads all rows of each.
REBUILT_AT_ONCE = 100
# By how much a row may be written later than its machine was seen: as long as the slowest listing takes, and much to spare.
LATENESS = timedelta(hours=1)
EVER = datetime.min.replace(tzinfo=UTC)

_PENDING = """\
SELECT DISTINCT o.instance_id FROM fleet_observation o LEFT JOIN ledger_progress p ON p.instance_id = o.instance_id
WHERE o.id > coalesce(p.observation_id, 0) AND o.seen_at > %(since)s ORDER BY o.instance_id LIMIT %(most)s
"""


@dataclass(slots=True)
class Built:
    """What one run did. `is_complete`: nothing was left when it ended."""

    machines: int = 0
    rows: int = 0
    is_complete: bool = False


def build_ledger(
    *, now: datetime, budget_seconds: float | None = None, machines_at_once: int = MACHINES_AT_ONCE
) -> Built:
    """Counts every observation that is not in the ledger yet. Stops between two batches once the budget is spent, and goes on next time."""
    ends = None if budget_seconds is None else time.monotonic() + budget_seconds
    built = Built()
    while (step := build_step(now=now, most=machines_at_once)) is not None:
        built.machines += step.machines
        built.rows += step.rows
        built.is_complete = step.is_complete
        if step.is_complete or (ends is not None and time.monotonic() >= ends):
            break
    return built


@transaction.atomic
def build_step(*, now: datetime, most: int) -> Built | None:
    """One batch of machines. None: another worker is at it."""
    if not take_lock(wait=False):
        return None
    ids = pending(since=unfinished_since(now), most=most)
    if not ids:
        LedgerBuild.objects.update_or_create(pk=1, defaults={"complete_until": now})
        return Built(is_complete=True)
    machines = read_machines(ids)
    read_newest(machines)
    found = write_ledgers(continued(machines.values()))
    return Built(len(ids), len(found))


def continued(machines: Iterable[Machine]) -> list[Folded]:
    found, again = [], {}
    for one in machines:
        folded = continue_ledger(one)
        if folded is None:
            again[one.instance_id] = one
        else:
            found.append(folded)
    if again:
        read_everything(again)
        found += map(make_ledger, again.values())
    return found


def rebuild_ledger(*, instances: Iterable[int], check: bool = False) -> Iterator[Difference]:
    """Makes the ledger of machines (ids) anew from all that is kept of the log, and yields what of it was stored otherwise.

    What was stored is replaced, but with `check`. Batches that were yielded are written, whether or not the caller goes on.
    """
    ids = iter(instances)
    while batch := list(islice(ids, REBUILT_AT_ONCE)):
        yield from rebuild_batch(batch, check=check)


@transaction.atomic
def rebuild_batch(ids: Collection[int], *, check: bool) -> list[Difference]:
    take_lock(wait=True)
    machines = read_machines(ids)
    read_everything(machines)
    made = [make_ledger(one) for one in machines.values()]
    if check:
        return [one for folded in made for one in differences_of(folded)]
    return write_ledgers(made)


def unfinished_since(now: datetime) -> datetime:
    """Once a day all rows are looked at: whatever was written late, or by hand, is found then."""
    last = LedgerBuild.objects.filter(pk=1).values_list("complete_until", flat=True).first()
    if last is None or last.astimezone(UTC).date() != now.astimezone(UTC).date():
        return EVER
    return last - LATENESS


@transaction.atomic
def look_at_everything() -> None:
    """For whoever wrote rows of the past: the next build looks at the whole log, and not only at what is new."""
    take_lock(wait=True)
    LedgerBuild.objects.all().delete()


def pending(*, since: datetime, most: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_PENDING, {"since": since, "most": most})
        return [pk for (pk,) in cursor.fetchall()]


def take_lock(*, wait: bool) -> bool:
    """Until the transaction ends."""
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            return True
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        (taken,) = cursor.fetchone()
        return bool(taken)
