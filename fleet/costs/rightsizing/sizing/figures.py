"""What is known of a machine and of an offer, and what comes of holding one against the other.

Bytes and bytes a second; shares from 0 to 1; money in one currency, the team's. None = not known, which is never taken for little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from fleet.providers.base import Market, Tenancy

# 365 days of 24 hours, over twelve months: what a machine that is never off is rented for in a month.
MONTH_HOURS = Decimal(730)
Told = Mapping[str, object]


class Kind(StrEnum):
    FEWER = "fewer"
    SMALLER = "smaller"
    SAME = "same"
    SPOT = "spot"
    RESERVED = "reserved"


class Why(StrEnum):
    """Why a machine is left alone. Those of evidence first; then, in this order, how far the best of the cheaper offers got."""

    OFF = "off"
    GPU_UNKNOWN = "gpu_unknown"
    PARTITIONED = "partitioned"
    PRICE_UNKNOWN = "price_unknown"
    COMMITTED = "committed"
    NOT_MEASURED = "not_measured"
    TOO_NEW = "too_new"
    THIN = "thin"
    STALE = "stale"
    NEVER_WORKED = "never_worked"
    NOTHING_CHEAPER = "nothing_cheaper"
    OTHER_KIND = "other_kind"
    GPUS = "gpus"
    MEMORY = "memory"
    LINKS = "links"
    HOST = "host"
    INTERRUPTS = "interrupts"
    SPEED_UNKNOWN = "speed_unknown"
    SLOWER = "slower"
    BUSY = "busy"
    SAVES_NOTHING = "saves_nothing"


class Loses(StrEnum):
    """What a change costs or loses beside money."""

    NEW_MACHINE = "new_machine"
    LOCAL_DISK = "local_disk"
    SLOWER = "slower"
    INTERRUPTIBLE = "interruptible"
    COMMITTED = "committed"
    OTHER_PROVIDER = "other_provider"
    OTHER_REGION = "other_region"
    HELD_MEMORY = "held_memory"
    NO_FP8 = "no_fp8"
    REQUESTS = "requests"
    DATED = "dated"
    NOT_TOLD = "not_told"


@dataclass(frozen=True, slots=True)
class Loss:
    code: Loses
    told: Told = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A machine, and what was read of it in the window.

    `span_seconds`: of the window it was there for; `running_seconds`: those in which it was not off; `coverage`: share of the GPU-seconds it ran
    in that were read. `working_at_once`: the most GPUs that worked in one hour, `holding_at_once`: that worked or held memory.
    Peaks of memory are of one GPU.
    """

    provider: str
    region: str
    gpu_model: str
    gpus: int
    market: Market
    tenancy: Tenancy
    price_per_hour: Decimal | None
    span_seconds: int
    running_seconds: int
    coverage: float
    newest_at: datetime | None
    peak_memory_bytes: float | None
    p999_memory_bytes: float | None
    working_at_once: int
    holding_at_once: int
    utilization_mean: float | None
    utilization_p50: float | None
    utilization_p95: float | None
    sm_activity_p95: float | None = None
    gpu_memory_bytes: int | None = None
    vcpus: int | None = None
    cpu_peak: float | None = None
    ram_peak_bytes: float | None = None
    disk_used_bytes: float | None = None
    network_peak: float | None = None
    serves: bool = False
    is_partitioned: bool = False
    loses_local_disk: bool = False

    @property
    def hours_per_month(self) -> Decimal:
        """As many as it would run in a month that goes on like the window, to a tenth of an hour."""
        if not self.span_seconds:
            return Decimal(0)
        hours = MONTH_HOURS * self.running_seconds / self.span_seconds
        return hours.quantize(Decimal("0.1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An offer of a whole machine. `price_per_hour` in the currency of the machine's; `priced_on`: the day of a price that is not live."""

    id: int
    provider: str
    region: str
    instance_type: str
    market: Market
    tenancy: Tenancy
    price_per_hour: Decimal
    gpu_model: str
    gpus: int
    gpu_memory_bytes: int
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    internet: float | None = None
    priced_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A change that would do. `hours_before` and `hours_after` a month, of which `saving` comes; `speed`: that of a GPU, of today's."""

    kind: Kind
    candidate: Candidate
    hours_before: Decimal
    hours_after: Decimal
    cost_before: Decimal
    cost_after: Decimal
    speed: float
    losses: tuple[Loss, ...] = ()

    @property
    def saving(self) -> Decimal:
        """A month."""
        return self.cost_before - self.cost_after


@dataclass(frozen=True, slots=True)
class LeftAlone:
    why: Why
    told: Told = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The change that is suggested, and others that would do too, the next best first."""

    best: Option
    others: tuple[Option, ...] = ()


Verdict = Suggestion | LeftAlone
