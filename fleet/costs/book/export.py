"""The observation log as a file that `ledger_replay` reads: what the ledger was made from, for whoever wants to check it elsewhere."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from django.db.models import QuerySet

from fleet.costs.book.fold import look
from fleet.costs.book.machines import read_everything, read_machines
from fleet.costs.ledger.sightings import COLUMNS, HOURLY_STORAGE, MOST_NAME, Sighting
from fleet.inventory.models import Instance

MACHINES_AT_ONCE = 50


def observation_csv(
    machines: QuerySet[Instance], *, since: datetime | None = None, until: datetime | None = None
) -> Iterator[str]:
    """Line by line, machine by machine, in the order of time. With `since`, what held then comes first."""
    yield line([*COLUMNS, HOURLY_STORAGE])
    ids = list(machines.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), MACHINES_AT_ONCE):
        for seen in sightings(ids[start : start + MACHINES_AT_ONCE], since=since, until=until):
            yield line(cells_of(seen))


def sightings(ids: Sequence[int], *, since: datetime | None, until: datetime | None) -> Iterator[Sighting]:
    names = dict(Instance.objects.filter(pk__in=ids).values_list("pk", "name"))
    machines = read_machines(ids)
    read_everything(machines)
    for one in machines.values():
        # The number keeps machines of one name apart, and a name that begins like a formula from being one.
        name = f"{one.instance_id} {names[one.instance_id]}"[:MOST_NAME].strip()
        told = [replace(seen, machine=name) for seen in look(one, one.rows)]
        yield from within(told, since=since, until=until)


def within(told: Sequence[Sighting], *, since: datetime | None, until: datetime | None) -> Sequence[Sighting]:
    """From the last one before `since` on, and before `until`."""
    times = [seen.seen_at for seen in told]
    first = max(bisect_left(times, since) - 1, 0) if since else 0
    return told[first : bisect_left(times, until) if until else None]


def cells_of(seen: Sighting) -> list[str]:
    return [cell(getattr(seen, name)) for name in (*COLUMNS, HOURLY_STORAGE)]


def cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def line(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()
