"""What a rule about unusual money sees, what it finds, and how it is made. Pure: amounts are in the team's currency, `today` is given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from fleet.alerts.rules.base import Threshold

Limits = Mapping[str, float]
WEEK = 7
# With fewer known days of the last seven there is no median to compare with.
LEAST_DAYS = 5
TEAM = "team"
# What is open stays open until it is this far under the level that raised it.
EASE = Decimal("0.9")


@dataclass(frozen=True, slots=True)
class Day:
    """One whole day. `idle`: held idle and free; `stopped_storage`: disks of stopped machines."""

    day: date
    amount: Decimal
    idle: Decimal = Decimal(0)
    stopped_storage: Decimal = Decimal(0)

    @property
    def idle_percent(self) -> Decimal | None:
        return 100 * self.idle / self.amount if self.amount > 0 else None


@dataclass(frozen=True, slots=True)
class NewMachine:
    """First seen within the last day. price_per_hour None: nobody told it, or not in a currency with a rate."""

    pk: int
    name: str
    first_day: date
    price_per_hour: Decimal | None


@dataclass(frozen=True, slots=True)
class StoppedDisk:
    pk: int
    name: str
    per_month: Decimal


@dataclass(frozen=True, slots=True)
class Facts:
    """`days`: whole days before `today`, ascending, without holes. `burn_per_hour`: what is charged on `burn_day`, None = not known."""

    today: date
    days: tuple[Day, ...]
    burn_day: date
    burn_per_hour: Decimal | None
    new_machines: tuple[NewMachine, ...] = ()
    stopped: tuple[StoppedDisk, ...] = ()
    # Of a day that is looked back at: all of its stopped disks in one sum.
    stopped_per_month: Decimal | None = None

    @property
    def last(self) -> Day | None:
        """Yesterday, if it is known."""
        return self.days[-1] if self.days and self.days[-1].day == self.today - timedelta(days=1) else None

    def week_before(self, end: date) -> list[Day]:
        """The known ones of the seven days before `end`."""
        return [one for one in self.days if end - timedelta(days=WEEK) <= one.day < end]

    def as_of(self, day: date) -> Facts:
        """As they were when that day had ended: what was charged an hour is the mean of the day."""
        known = tuple(one for one in self.days if one.day <= day)
        last = known[-1] if known and known[-1].day == day else None
        return replace(
            self,
            today=day + timedelta(days=1),
            days=known,
            burn_day=day,
            burn_per_hour=last.amount / 24 if last else None,
            new_machines=tuple(one for one in self.new_machines if one.first_day == day),
            stopped=(),
            stopped_per_month=last.stopped_storage * 365 / 12 if last else None,
        )


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`subject`: "team", or "instance:<id>". `values`: the evidence, JSON-ready. `per_hour`: the money at stake."""

    subject: str
    values: dict[str, Any]
    instance: int | None = None
    per_hour: Decimal | None = None


# What there is; None: the evidence does not tell, so that what is open stays open.
Looked = Sequence[Anomaly] | None
Look = Callable[[Facts, Limits, Collection[str]], Looked]


@dataclass(frozen=True, slots=True)
class AnomalyKind:
    """`look(facts, limits, open_subjects)`. Below its minimum it says nothing, and nothing of that is kept: it fires when it has grown."""

    kind: str
    severity: str
    look: Look
    thresholds: tuple[Threshold, ...] = field(default=())

    @property
    def cause(self) -> str:
        return f"costs.{self.kind.removeprefix('costs_')}"

    def limits(self, own: Mapping[str, float] | None = None) -> dict[str, float]:
        """The defaults, with what a team set of its own."""
        own = own or {}
        return {one.name: float(own.get(one.name, one.default)) for one in self.thresholds}


def decimal(limit: float) -> Decimal:
    return Decimal(str(limit))


def reaches(value: Decimal, limit: Decimal, *, is_open: bool) -> bool:
    return value >= (limit * EASE if is_open else limit)


def middle(values: Sequence[Decimal]) -> Decimal | None:
    return median(values) if len(values) >= LEAST_DAYS else None


def text(amount: Decimal) -> str:
    return f"{amount:.2f}"
