"""What a forecast is made from. All money is in one currency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from fleet.costs.ledger.charges import Rules
from fleet.costs.ledger.intervals import Meter, Unit

# The rate of a day is kept at these local hours: a fleet that sleeps at night has another one at noon.
RATE_HOURS = (0, 6, 12, 18)
EACH_SECOND = Rules()


@dataclass(frozen=True, slots=True)
class OpenRate:
    """One interval of the ledger that reaches beyond now: unit_price x quantity for each unit. `machine` None: of the account.

    end None: nobody has said that it ends. `share`: what of it the forecast is about.
    """

    machine: int | None
    meter: Meter
    unit: Unit
    unit_price: Decimal
    start: datetime
    quantity: Decimal = Decimal(1)
    end: datetime | None = None
    share: Decimal = Decimal(1)

    @property
    def per_unit(self) -> Decimal:
        return self.unit_price * self.quantity * self.share


class Verb(StrEnum):
    STOP = "stop"
    TERMINATE = "terminate"
    START = "start"


@dataclass(frozen=True, slots=True)
class Step:
    """What is known to become of one machine. The end of a lease is a step too."""

    at: datetime
    verb: Verb
    is_lease: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of which something is known. `on_stop`: an hour, beyond disks that are charged already, from a stop on.

    `started`: an hour, from a start on. None = nobody told. `stops_charging`: False where a stopped machine costs what it cost before.
    `run_since` and `rules`: for what a provider charges at the end of a run beyond its time.
    """

    pk: int
    steps: tuple[Step, ...]
    started: Decimal | None = None
    on_stop: Decimal | None = Decimal(0)
    stops_charging: bool = True
    disks_go_on: bool = True
    run_since: datetime | None = None
    rules: Rules = EACH_SECOND


@dataclass(frozen=True, slots=True)
class PastDay:
    """One whole day. `rates`: what was charged an hour at RATE_HOURS, None where nobody knows.

    by_age: of `amount`, what went to machines first seen so many days before.
    """

    day: date
    amount: Decimal
    rates: tuple[Decimal | None, ...]
    by_age: Mapping[int, Decimal] = field(default_factory=dict)
