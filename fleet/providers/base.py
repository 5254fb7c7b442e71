"""The seam every provider fits through: value types, the vocabulary, and the contract of an adapter.

No Django, no models. Adapters convert: the core never sees cents, thousandths, per-GPU prices or raw words alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Protocol


class InstanceState(StrEnum):
    PROVISIONING = "provisioning"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    ERROR = "error"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


class Billing(StrEnum):
    """What the provider charges in the present state: everything, the disks, nothing, or we cannot tell."""

    FULL = "full"
    STORAGE = "storage"
    NONE = "none"
    UNKNOWN = "unknown"


class Market(StrEnum):
    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"
    PREPAID = "prepaid"
    UNKNOWN = "unknown"


class Tenancy(StrEnum):
    DEDICATED_HOST = "dedicated_host"
    DEDICATED_GPU = "dedicated_gpu"  # own GPUs, the host is shared
    COMMUNITY_HOST = "community_host"  # own GPUs on a host of somebody unknown, shared
    FRACTION = "fraction"  # a part of a GPU
    UNKNOWN = "unknown"

    @property
    def is_exclusive(self) -> bool | None:
        return None if self is Tenancy.UNKNOWN else self is Tenancy.DEDICATED_HOST


class Capability(StrEnum):
    LIST = "list"
    START = "start"
    STOP = "stop"
    TERMINATE = "terminate"
    CREATE = "create"
    OFFERS = "offers"
    IMAGES = "images"
    BALANCE = "balance"


# An adapter has the method exactly when it declares the capability.
METHODS: Mapping[Capability, str] = {
    Capability.LIST: "instances",
    Capability.START: "start",
    Capability.STOP: "stop",
    Capability.TERMINATE: "terminate",
    Capability.CREATE: "create",
    Capability.OFFERS: "offers",
    Capability.IMAGES: "images",
    Capability.BALANCE: "balance",
}


def gettext_noop(text: str) -> str:
    """Marks a text for translation. Adapters know no Django: whoever shows the text translates it."""
    return text


@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Ref:
    """How a provider finds one machine; some need the region beside the id."""

    external_id: str
    region: str = ""


@dataclass(frozen=True, slots=True)
class Ssh:
    host: str
    port: int = 22
    user: str = "root"
    kind: str = "direct"  # or "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInstance:
    """One machine as its provider lists it. None = the provider does not say. Rates are for the whole machine, an hour.

    `extra` holds what has no field here, JSON-ready and free of secrets.
    """

    ref: Ref
    name: str
    state: InstanceState
    raw_state: str
    billing: Billing
    state_reason: str = ""
    market: Market = Market.UNKNOWN
    tenancy: Tenancy = Tenancy.UNKNOWN
    instance_type: str = ""
    gpu_raw: str = ""
    gpu_model: str = ""
    gpu_count: int | None = None
    gpu_memory_mib: int | None = None
    host_share: Decimal | None = None
    vcpus: int | None = None
    ram_mib: int | None = None
    disk_gb: int | None = None
    rate: Money | None = None
    storage_rate: Money | None = None
    ssh: tuple[Ssh, ...] = ()
    image_id: str = ""
    image_name: str = ""
    created_at: datetime | None = None
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    expires_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderImage:
    external_id: str
    name: str
    created_at: datetime | None = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """One permission in the provider's words, whether the key has it, and what its absence costs (an English message id)."""

    name: str
    granted: bool
    without: str = ""


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """What the cheapest authenticated read says of the key. `scopes`: those that reading uses, where the provider tells."""

    external_id: str = ""
    currency: str = "USD"
    scopes: tuple[Scope, ...] = ()

    @property
    def lacks(self) -> tuple[str, ...]:
        return tuple(scope.name for scope in self.scopes if not scope.granted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an adapter's account form; form, API schema and redaction come from it.

    Labels and hints are English message ids, marked with gettext_noop.
    """

    name: str
    label: str
    help_text: str = ""
    secret: bool = False
    required: bool = True
    default: str = ""
    multiline: bool = False


class Sign(StrEnum):
    """How a fate is marked: charged no more, still charged, kept, lost, not promised, no answer."""

    OFF = "off"
    PAID = "pay"
    KEPT = "kept"
    LOST = "lost"
    RISK = "risk"
    NOTHING = "na"


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one thing. `word` and `note` are English message ids."""

    sign: Sign
    word: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What one way to end or pause a machine does to its GPUs, money and disks. `event` and `note` are English message ids."""

    event: str
    note: str = ""
    gpus: Fate
    disks_billing: Fate
    volumes: Fate
    local_disk: Fate
    return_: Fate


class Provider(Protocol):
    """One adapter, made for one account. Synchronous; may block; raises only fleet.providers.errors.

    Every map from a raw word is read with `.get(raw, UNKNOWN)`: a word that a provider invents tomorrow must not stop a poll.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]
    capabilities: ClassVar[frozenset[Capability]]
    # Raised whenever a raw word is mapped differently: observations name the rule they were made under.
    rule_version: ClassVar[int]
    # What stopping means here, so that no button surprises anybody; empty where there is nothing to stop.
    endings: ClassVar[tuple[Ending, ...]]

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options` holds every declared field, secrets included, "" where empty. Raises InvalidOption; opens no connection."""

    def verify(self) -> AccountInfo:
        """Reads the cheapest thing that needs the credentials. Raises AuthFailed or ScopeMissing."""
        ...


class ListsInstances(Provider, Protocol):
    """Capability LIST."""

    def instances(self) -> Iterator[ProviderInstance]:
        """Every page of every region; complete, or it raises. Never a part."""
        ...


class ListsImages(Provider, Protocol):
    """Capability IMAGES."""

    def images(self) -> Iterator[ProviderImage]:
        """The account's own images; complete, or it raises: ScopeMissing where the key may list machines but not images."""
        ...
