"""The ledger: from what was seen of a machine to intervals in which one price held for one meter. Pure.

Intervals are half-open, in UTC and of whole seconds. A meter has at most one open one. When something changes between two sightings, it changed at the
provider's own time where that is known, else in the middle between the two, and half of the distance is kept as what is not known.
Nobody looking is no change: a machine that ran before and after a silence ran throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from fleet.costs.ledger.sightings import Sighting
from fleet.providers.base import Billing

ZERO_WIDTH = timedelta(0)
EVER = datetime.min.replace(tzinfo=UTC)


class Meter(StrEnum):
    COMPUTE = "compute"
    DISK_RUNNING = "disk_running"
    DISK_STOPPED = "disk_stopped"
    # Not seen in listings of machines: typed by people, or read from bills.
    NETWORK_VOLUME = "network_volume"
    EGRESS = "egress"
    ADDRESS = "address"
    LICENCE = "licence"
    COMMITMENT = "commitment"
    ADJUSTMENT = "adjustment"
    # What the provider charges beyond the time itself: up to its quantum, and its minimum a start.
    MINIMUM = "minimum"
    # No money, but the reason why there is none: nothing is charged, or nobody can tell what is.
    NOTHING = "nothing"
    UNKNOWN = "unknown"


class Unit(StrEnum):
    HOUR = "hour"
    GB_MONTH = "gb_month"
    MONTH = "month"
    ONCE = "once"
    NONE = ""


class EdgeSource(StrEnum):
    """Where the time of an edge is from."""

    PROVIDER = "provider"
    MIDPOINT = "midpoint"
    FIRST_SEEN = "first_seen"
    TYPED = "typed"


class PriceSource(StrEnum):
    """Where a price is from."""

    LISTING = "listing"
    OFFER = "offer"
    TYPED = "typed"
    BILL = "bill"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Price:
    """unit_price None: charged, at a price that nobody told."""

    unit: Unit
    unit_price: Decimal | None
    quantity: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Interval:
    """[start, end) of one meter of one machine; end None: it goes on. The widths are how far start and end may be off, either way."""

    machine: str
    meter: Meter
    price: Price
    start: datetime
    end: datetime | None = None
    start_width: timedelta = ZERO_WIDTH
    end_width: timedelta = ZERO_WIDTH
    start_source: EdgeSource = EdgeSource.FIRST_SEEN
    seen_at: datetime | None = None
    market: str = ""
    # A number that grows with each start of the machine: minimums are charged once a start.
    run: int = 0

    @property
    def seconds(self) -> int | None:
        return None if self.end is None else round((self.end - self.start).total_seconds())


@dataclass(frozen=True, slots=True)
class Edge:
    at: datetime
    width: timedelta = ZERO_WIDTH
    source: EdgeSource = EdgeSource.FIRST_SEEN


@dataclass(slots=True)
class MachineLedger:
    """The fold of one machine's sightings. Sightings older than the last one are refused: rebuild the ledger from all of them."""

    machine: str
    closed: list[Interval] = field(default_factory=list)
    open: dict[Meter, Interval] = field(default_factory=dict)
    last: Sighting | None = None
    run: int = 0
    # Restored from a store that has more closed intervals than `closed`.
    has_history: bool = False

    def see(self, seen: Sighting) -> None:
        if self.last is not None and seen.seen_at < self.last.seen_at:
            raise ValueError(f"{self.machine} was seen at {seen.seen_at} after {self.last.seen_at} was counted")
        before, self.last = self.last, seen
        if before is None:
            self._begin(seen)
        elif restarted(before, seen):
            self._restart(before, seen)
        else:
            self._turn(meters_of(seen), edge_between(before, seen, since=self._since), seen)

    @property
    def _since(self) -> datetime:
        """Before this nothing may change any more: the intervals that hold now began there. What was never known may begin earlier."""
        if set(self.open) == {Meter.UNKNOWN} and not (self.closed or self.has_history):
            return EVER
        return max(one.start for one in self.open.values())

    def _begin(self, seen: Sighting) -> None:
        told = seen.provider_time
        edge = Edge(told, source=EdgeSource.PROVIDER) if told and told <= seen.seen_at else Edge(seen.seen_at)
        self._turn(meters_of(seen), edge, seen)

    def _restart(self, before: Sighting, seen: Sighting) -> None:
        """It ran, and runs again since a later start: it stopped some time between. Nobody saw what that cost."""
        began = seen.provider_time
        assert began is not None
        half = (began - before.seen_at) / 2
        self._turn({Meter.UNKNOWN: unpriced(seen)}, Edge(before.seen_at + half, half, EdgeSource.MIDPOINT), before)
        self._turn(meters_of(seen), Edge(began, source=EdgeSource.PROVIDER), seen)

    def _turn(self, wanted: Mapping[Meter, Price], edge: Edge, seen: Sighting) -> None:
        edge = replace(edge, at=edge.at.replace(microsecond=0))
        starts = Meter.COMPUTE in wanted and Meter.COMPUTE not in self.open
        self.run += starts
        for meter, one in list(self.open.items()):
            if (wanted.get(meter), seen.market.value) != (one.price, one.market):
                self._close(meter, edge)
        for meter, price in wanted.items():
            if meter not in self.open:
                self.open[meter] = Interval(
                    self.machine,
                    meter,
                    price,
                    edge.at,
                    start_width=edge.width,
                    start_source=edge.source,
                    seen_at=seen.seen_at,
                    market=seen.market.value,
                    run=self.run,
                )

    def _close(self, meter: Meter, edge: Edge) -> None:
        one = self.open.pop(meter)
        # An interval of no length is one whose price never held.
        if edge.at > one.start:
            self.closed.append(replace(one, end=edge.at, end_width=edge.width))

    def intervals(self) -> Iterator[Interval]:
        yield from self.closed
        yield from self.open.values()


class Ledger:
    """Of many machines. The same sightings give the same ledger, in whatever batches they come."""

    def __init__(self) -> None:
        self.machines: dict[str, MachineLedger] = {}

    def see(self, sightings: Iterable[Sighting]) -> None:
        for seen in sightings:
            self.machines.setdefault(seen.machine, MachineLedger(seen.machine)).see(seen)

    def intervals(self) -> list[Interval]:
        found = [one for machine in self.machines.values() for one in machine.intervals()]
        return sorted(found, key=lambda one: (one.machine, one.start, one.meter))


def meters_of(seen: Sighting) -> dict[Meter, Price]:
    """What is charged in the state that was seen. Never empty: no charge and no knowledge are meters of their own."""
    if seen.billing is Billing.FULL:
        compute = Price(Unit.HOUR, seen.price_per_hour, seen.quantity, seen.currency)
        return {Meter.COMPUTE: compute, **disk(Meter.DISK_RUNNING, seen)}
    if seen.billing is Billing.STORAGE:
        return disk(Meter.DISK_STOPPED, seen) or {Meter.DISK_STOPPED: unpriced(seen)}
    return {Meter.NOTHING if seen.billing is Billing.NONE else Meter.UNKNOWN: unpriced(seen)}


def disk(meter: Meter, seen: Sighting) -> dict[Meter, Price]:
    if seen.storage_price_per_hour is not None:
        return {meter: Price(Unit.HOUR, seen.storage_price_per_hour, Decimal(1), seen.currency)}
    if seen.storage_price_per_month is None or seen.storage_gb is None:
        return {}
    return {meter: Price(Unit.GB_MONTH, seen.storage_price_per_month, seen.storage_gb, seen.currency)}


def unpriced(seen: Sighting) -> Price:
    return Price(Unit.NONE, None, Decimal(1), seen.currency)


def restarted(before: Sighting, seen: Sighting) -> bool:
    """Both times it ran at full price, and in between it was started."""
    both = before.billing is Billing.FULL and seen.billing is Billing.FULL
    told = seen.provider_time
    # A clock that runs ahead of ours has told of this start before.
    return both and told is not None and told != before.provider_time and before.seen_at < told <= seen.seen_at


def edge_between(before: Sighting, seen: Sighting, *, since: datetime) -> Edge:
    """When what differs changed. A provider's time is of the state: a price that changed alone has none."""
    told = seen.provider_time
    changed = (before.state, before.billing) != (seen.state, seen.billing)
    if changed and told is not None and told != before.provider_time and since <= told <= seen.seen_at:
        return Edge(told, source=EdgeSource.PROVIDER)
    half = (seen.seen_at - before.seen_at) / 2
    return Edge(before.seen_at + half, half, EdgeSource.MIDPOINT)
