"""From rows of the observation log to sightings: what each listing showed, and that the values before were still there shortly before.

What a list leaves out is not seen to stop. Only a machine that is gone in the end ended, between the last list that named it and the first
that did not. Where an account was disconnected, nobody knows from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from fleet.costs.ledger.sightings import Sighting
from fleet.inventory.models import Observation
from fleet.providers.base import Billing, InstanceState, Market

# States whose beginning is a start; those whose beginning is a stop are the rest that providers tell a time of.
STARTED = frozenset({InstanceState.RUNNING, InstanceState.STARTING, InstanceState.UNREACHABLE})
STOPPED = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})


@dataclass(frozen=True, slots=True)
class Seen:
    """A row that counts, when it counts from, and until when the values before it were seen."""

    row: Observation
    at: datetime
    before_until: datetime | None


def sightings_of(
    rows: Sequence[Observation], *, machine: str, rate_has_disks: bool, counted_until: datetime | None = None
) -> list[Sighting]:
    """Of rows of one machine in the order in which they were written, which is what counts: a list may begin before a reading and end after it.

    `counted_until`: what began before is somebody else's until then.
    """
    found: list[Sighting] = []
    for seen in counted(rows):
        at = max(seen.at, found[-1].seen_at) if found else seen.at
        if found and seen.before_until is not None and found[-1].seen_at < min(seen.before_until, at):
            found.append(replace(found[-1], seen_at=min(seen.before_until, at)))
        found.append(sighting_of(seen.row, at=at, machine=machine, rate_has_disks=rate_has_disks))
        told = found[-1].provider_time
        if counted_until is not None and told is not None and told < counted_until:
            found[-1] = replace(found[-1], provider_time=counted_until)
    return found


def counted(rows: Sequence[Observation]) -> list[Seen]:
    found: list[Seen] = []
    last = len(rows) - 1
    index = -1
    for listed, group in groupby(rows, key=lambda row: row.listed):
        part = list(group)
        index += len(part)
        if listed:
            found += [Seen(row, row.seen_at, row.unchanged_until) for row in part]
        elif index == last:
            found += ending(part)
    return found


def ending(unlisted: Sequence[Observation]) -> list[Seen]:
    """The last rows of a machine, none of which a list showed."""
    row = unlisted[-1]
    if row.state == InstanceState.TERMINATED:
        return [Seen(row, unlisted[0].seen_at, row.unchanged_until)]
    if row.unchanged_until is None and row.billing == Billing.UNKNOWN:
        # Disconnected: what it was is claimed up to that moment.
        return [Seen(row, row.seen_at, row.seen_at)]
    return []


def sighting_of(row: Observation, *, at: datetime, machine: str, rate_has_disks: bool) -> Sighting:
    billing = Billing(row.billing)
    disks = row.storage_price_per_hour if billing is Billing.STORAGE or not rate_has_disks else None
    return Sighting(
        seen_at=at,
        machine=machine,
        state=row.state,
        billing=billing,
        provider_time=provider_time(row),
        market=Market(row.market),
        price_per_hour=row.price_per_hour,
        currency=row.currency,
        storage_price_per_hour=disks,
    )


def provider_time(row: Observation) -> datetime | None:
    """When the state of the row began, by the provider's clock."""
    if row.state in STARTED:
        return row.provider_started_at
    return row.provider_stopped_at if row.state in STOPPED else None
