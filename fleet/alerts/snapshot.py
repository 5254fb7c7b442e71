"""What the rules see of a team: plain rows, read together. Pure: no Django, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct, field

from fleet.alerts.findings import instance_subject
from fleet.states import GpuState

# An open (or pending) part of an alert: its subject and its detail.
OpenPart = tuple[str, str]
# How often an agent's heart beats (docs/agent-protocol.md).
HEARTBEAT_SECONDS = 15.0


class Gpu(Struct, frozen=True, gc=False):
    """One GPU with its latest reading. `fresh`: that reading is of now. None = not read."""

    pk: int
    index: int
    name: str
    is_parent: bool
    is_part: bool
    fresh: bool
    state: GpuState
    sampled_at: datetime | None = None
    lost: bool = False
    utilization_percent: float | None = None
    sm_activity: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    throttle_reasons: int | None = None
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None


class Agent(Struct, frozen=True, gc=False):
    """`heard_at`: the last heartbeat, or, before the first, when it was let in."""

    heard_at: datetime
    version: str
    nvml_state: str
    nvml_detail: str
    nvml_since: datetime | None
    clock_skew_seconds: float | None
    oldest_queued_at: datetime | None


class Filesystem(Struct, frozen=True, gc=False):
    mount: str
    used_bytes: int
    total_bytes: int


class Host(Struct, frozen=True, gc=False):
    """The machine's latest reading. `fill_bytes_per_second`: how the root file system grew over the last hours; None = not known."""

    fresh: bool
    sampled_at: datetime
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    cpu_iowait_percent: float | None = None
    pressure_io_percent: float | None = None
    filesystems: tuple[Filesystem, ...] = ()
    fill_bytes_per_second: float | None = None


class Happened(Struct, frozen=True, gc=False):
    """Equal events of one GPU, counted; `last_at` is the newest. `code`: one that is known, else None; `newest`: as the machine said it."""

    kind: str
    code: int | None
    gpu_pk: int | None
    last_at: datetime
    count: int
    newest: int | None = None


class PriceChange(Struct, frozen=True, gc=False):
    at: datetime
    before: Decimal
    after: Decimal


class Machine(Struct, frozen=True, gc=False):
    """A machine that is rented. `powered`: False where the provider shows it off, None where nobody knows.

    `doubted_since`: the account's list leaves it out, and nobody believes the list.
    """

    pk: int
    name: str
    account_id: int
    state: str
    powered: bool | None
    billing: str
    managed: bool
    first_seen_at: datetime
    last_seen_at: datetime
    expires_at: datetime | None
    gpu_count: int | None
    price_per_hour: Decimal | None
    currency: str
    gpu_model: str = ""
    gpu_memory_mib: int | None = None
    doubted_since: datetime | None = None
    scrape_seconds: int = 0
    agent: Agent | None = None
    host: Host | None = None
    gpus: tuple[Gpu, ...] = ()
    happened: tuple[Happened, ...] = ()
    price_change: PriceChange | None = None

    @property
    def subject(self) -> str:
        return instance_subject(self.pk)

    @property
    def price_per_gpu(self) -> Decimal | None:
        count = self.gpu_count or sum(not gpu.is_part for gpu in self.gpus)
        return self.price_per_hour / count if self.price_per_hour is not None and count else None

    def gpu(self, pk: int | None) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.pk == pk), None)


class Account(Struct, frozen=True, gc=False):
    """`reads`: its machines come from listings, and people did not pause that."""

    pk: int
    name: str
    currency: str
    reads: bool
    failures: int
    error_kind: str
    failed_at: datetime | None
    listed_at: datetime | None
    interval_seconds: int


class Asked(Struct, frozen=True, gc=False):
    """An act that a provider was asked for and that is not proved: open, or failed a while ago with no other act since."""

    pk: int
    kind: str
    is_open: bool
    machine: str
    instance_id: int | None
    account_id: int
    requested_at: datetime
    failed_at: datetime | None
    attempts: int
    seen_state: str
    seen_billing: str
    error_kind: str
    price_per_hour: Decimal | None
    currency: str


class Notice(Struct, frozen=True, gc=False):
    """What a provider announced for a machine that is there, and still lists. `text`: its own words."""

    pk: int
    kind: str
    instance_id: int
    account_id: int
    first_seen_at: datetime
    starts_at: datetime | None = None
    text: str = ""


class Trouble(Struct, frozen=True):
    """Something of Rackrent itself that does not work. `part`: beat, worker, rollups, ingest, rule:<kind>."""

    part: str
    severity: str
    since: datetime | None = None
    values: dict[str, float | str] = field(default_factory=dict)


class Snapshot(Struct, frozen=True):
    """One team. `watching_since`: Rackrent has looked without a break since then; what it did not hear before, nobody can say."""

    machines: tuple[Machine, ...]
    accounts: tuple[Account, ...]
    watching_since: datetime
    agent_version: str = ""
    troubles: tuple[Trouble, ...] = ()
    asked: tuple[Asked, ...] = ()
    notices: tuple[Notice, ...] = ()
    opened: Mapping[tuple[str, str], frozenset[OpenPart]] = field(default_factory=dict)

    def open_parts(self, cause: str, kind: str) -> frozenset[OpenPart]:
        """What is open or pending of this rule: (subject, detail)."""
        return self.opened.get((cause, kind), frozenset())

    def is_open(self, cause: str, kind: str, subject: str, detail: str = "") -> bool:
        return (subject, detail) in self.open_parts(cause, kind)

    def account(self, pk: int) -> Account | None:
        return next((account for account in self.accounts if account.pk == pk), None)
