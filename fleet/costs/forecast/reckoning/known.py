"""What is known to be charged from now on: open intervals, and what plans, leases and minimums make of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal

from fleet.costs.forecast.reckoning.flows import Change, Lump, clock
from fleet.costs.forecast.reckoning.inputs import Machine, OpenRate, Step, Verb
from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.costs.ledger.charges import HOUR_SECONDS, billed_seconds
from fleet.costs.ledger.intervals import Meter, Unit

PARTS: Mapping[Meter, PartKind] = {
    Meter.COMPUTE: PartKind.RUNNING,
    Meter.DISK_RUNNING: PartKind.RUNNING,
    Meter.DISK_STOPPED: PartKind.DISKS,
    Meter.MINIMUM: PartKind.MINIMUMS,
}
# These outlive the machine that they are listed with.
OUTLIVE = frozenset({Meter.NETWORK_VOLUME, Meter.COMMITMENT, Meter.ADJUSTMENT})
Moves = tuple[list[Change], list[Lump]]


def known_flows(rates: Iterable[OpenRate], machines: Iterable[Machine], *, since: datetime) -> Moves:
    """Every rate as if nothing happened, and for each known step what it changes."""
    open_rates = list(rates)
    changes = [change for rate in open_rates for change in flow_of(rate, since)]
    by_machine: dict[int, list[OpenRate]] = {}
    for rate in open_rates:
        if rate.machine is not None and rate.end is None:
            by_machine.setdefault(rate.machine, []).append(rate)
    lumps: list[Lump] = []
    for machine in machines:
        course = Course(machine, by_machine.get(machine.pk, []), since)
        changes += course.changes
        lumps += course.lumps
    return changes, lumps


def flow_of(rate: OpenRate, since: datetime) -> Iterator[Change]:
    unit, per_unit = rate.unit, rate.per_unit
    if unit is Unit.NONE:
        return
    if unit is Unit.ONCE:
        # All of it over its interval, evenly; without an end it has been charged.
        if rate.end is None:
            return
        unit, per_unit = Unit.HOUR, per_unit / clock(Unit.HOUR, rate.end, rate.start)
    part = PARTS.get(rate.meter, PartKind.CHARGES)
    yield Change(max(rate.start, since), unit, per_unit, part)
    if rate.end is not None:
        yield Change(max(rate.end, since), unit, -per_unit, part)


class Course:
    """One machine through its known steps. What a step saves or adds stands in the part of that step."""

    def __init__(self, machine: Machine, rates: Collection[OpenRate], since: datetime) -> None:
        self.machine, self.since = machine, since
        self.changes: list[Change] = []
        self.lumps: list[Lump] = []
        # What is charged as things stand, by meter: it is what a step takes away.
        self.charged = [(rate.meter, rate.unit, rate.per_unit) for rate in rates if rate.unit is not Unit.ONCE]
        self.run_since, self.gone = machine.run_since, False
        for step in sorted(machine.steps, key=lambda step: step.at):
            self._take(step)

    @property
    def runs(self) -> bool:
        return any(meter is Meter.COMPUTE for meter, _unit, _rate in self.charged)

    def _take(self, step: Step) -> None:
        at = max(step.at, self.since)
        if self.gone:
            return
        if step.verb is Verb.TERMINATE:
            self._minimum(at)
            self._end(set(Meter) - OUTLIVE, at, PartKind.LEASES if step.is_lease else PartKind.STOPS)
            self.gone = True
        elif step.verb is Verb.STOP and self.runs and self.machine.stops_charging:
            self._stop(at)
        elif step.verb is Verb.START and not self.runs:
            self._start(at)

    def _stop(self, at: datetime) -> None:
        """Its disks go on, unless the provider charges nothing for a stopped machine."""
        self._minimum(at)
        self._end(
            {Meter.COMPUTE} if self.machine.disks_go_on else {Meter.COMPUTE, Meter.DISK_RUNNING}, at, PartKind.STOPS
        )
        self._begin(Meter.DISK_STOPPED, self.machine.on_stop, at, PartKind.STOPS)

    def _start(self, at: datetime) -> None:
        if self.machine.on_stop:
            self._end({Meter.DISK_STOPPED}, at, PartKind.STARTS)
        self._begin(Meter.COMPUTE, self.machine.started, at, PartKind.STARTS)
        self.run_since = at

    def _begin(self, meter: Meter, per_hour: Decimal | None, at: datetime, part: PartKind) -> None:
        if per_hour:
            self.charged.append((meter, Unit.HOUR, per_hour))
            self.changes.append(Change(at, Unit.HOUR, per_hour, part))

    def _end(self, meters: Collection[Meter], at: datetime, part: PartKind) -> None:
        ending = [one for one in self.charged if one[0] in meters]
        self.charged = [one for one in self.charged if one[0] not in meters]
        self.changes += [Change(at, unit, -rate, part) for _meter, unit, rate in ending]

    def _minimum(self, at: datetime) -> None:
        """What the provider charges for the run beyond its time, once it ends."""
        if self.run_since is None or not self.runs:
            return
        seconds = round((at - self.run_since).total_seconds())
        beyond = billed_seconds(seconds, self.machine.rules) - seconds
        rate = sum(
            (rate for meter, unit, rate in self.charged if meter is Meter.COMPUTE and unit is Unit.HOUR), Decimal(0)
        )
        if beyond > 0 and rate:
            self.lumps.append(Lump(at, rate * beyond / HOUR_SECONDS, PartKind.MINIMUMS))
