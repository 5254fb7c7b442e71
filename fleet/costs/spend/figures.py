"""What is asked of money and what is answered: dimensions, filters, sums. `spend` (spend.py) makes them of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum

from fleet.states import BUYS_NOTHING, IDLE_MONEY, GpuState


class By(StrEnum):
    """What money can be told apart by. LABEL needs `label`: the values of one label."""

    DAY = "day"
    MONTH = "month"
    PROJECT = "project"
    OWNER = "owner"
    ACCOUNT = "account"
    PROVIDER = "provider"
    MACHINE = "machine"
    METER = "meter"
    STATE = "state"
    GPU_MODEL = "gpu_model"
    MARKET = "market"
    TENANCY = "tenancy"
    REGION = "region"
    JOB = "job"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Where:
    """Filters, all of which must hold; () = all. Ids; None within `projects` or `owners` = those of nobody, within `instances` = what belongs to no machine."""

    projects: tuple[int | None, ...] = ()
    owners: tuple[int | None, ...] = ()
    accounts: tuple[int, ...] = ()
    instances: tuple[int | None, ...] = ()
    meters: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sum:
    """What one group cost. `amounts`: by currency as charged. `total`: in the currency asked for, what has a rate to it.

    `states`: `total` by GPU state, which adds up to it. `gpu_seconds`: of compute by state. `unconverted`: currency -> amount without a rate.
    """

    amounts: dict[str, Decimal]
    total: Decimal
    states: dict[GpuState, Decimal]
    gpu_seconds: dict[GpuState, float]
    unpriced_seconds: float = 0.0
    unconverted: dict[str, Decimal] = field(default_factory=dict)

    @property
    def idle(self) -> Decimal:
        """Held idle and free."""
        return sum((self.states.get(state, Decimal(0)) for state in IDLE_MONEY), Decimal(0))

    @property
    def bought_nothing(self) -> Decimal:
        return sum((self.states.get(state, Decimal(0)) for state in BUYS_NOTHING), Decimal(0))


@dataclass(frozen=True, slots=True)
class UsedRate:
    """A rate with which something was converted."""

    currency: str
    into: str
    day: date
    rate: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class Spend:
    """`rows`: by the values of `by`, in its order (ids of projects, owners, accounts and machines; dates; words). The largest total first."""

    currency: str
    by: tuple[By, ...]
    rows: dict[tuple[object, ...], Sum]
    all: Sum
    rates: tuple[UsedRate, ...] = ()
