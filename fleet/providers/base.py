"""The seam every provider fits through: value types, the vocabulary, and the contract of an adapter.

No Django, no models. Adapters convert: the core never sees cents, thousandths, per-GPU prices or raw words alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Protocol

from fleet.providers.bills import BilledCharge, ChargeKind
from fleet.providers.endings import Ending, Fate, Part, Sign, StopSemantics
from fleet.providers.offers import CreateSpec, Offer, OfferQuery
from fleet.providers.reports import Notice, NoticeKind, ProviderUsage
from fleet.providers.values import Market, Money, Ref, Tenancy, gettext_noop


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


class Capability(StrEnum):
    LIST = "list"
    FIND = "find"
    START = "start"
    STOP = "stop"
    TERMINATE = "terminate"
    REBOOT = "reboot"
    CREATE = "create"
    OFFERS = "offers"
    IMAGES = "images"
    SAVE_IMAGE = "save_image"
    BALANCE = "balance"
    METRICS = "metrics"
    NOTICES = "notices"
    COSTS = "costs"


# An adapter has the method exactly when it declares the capability.
METHODS: Mapping[Capability, str] = {
    Capability.LIST: "instances",
    Capability.FIND: "instance",
    Capability.START: "start",
    Capability.STOP: "stop",
    Capability.TERMINATE: "terminate",
    Capability.REBOOT: "reboot",
    Capability.CREATE: "create",
    Capability.OFFERS: "offers",
    Capability.IMAGES: "images",
    Capability.SAVE_IMAGE: "save_image",
    Capability.BALANCE: "balance",
    Capability.METRICS: "metrics",
    Capability.NOTICES: "notices",
    Capability.COSTS: "charges",
}


__all__ = [
    "BilledCharge",
    "ChargeKind",
    "CreateSpec",
    "Ending",
    "Fate",
    "Market",
    "Money",
    "Notice",
    "NoticeKind",
    "Offer",
    "OfferQuery",
    "Part",
    "ProviderUsage",
    "Ref",
    "Sign",
    "StopSemantics",
    "Tenancy",
    "gettext_noop",
]


@dataclass(frozen=True, slots=True)
class Ssh:
    host: str
    port: int = 22
    user: str = "root"
    kind: str = "direct"  # or "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInstance:
    """One machine as its provider lists it. None = the provider does not say. Rates are for the whole machine, an hour.

    `extra` holds what has no field here, JSON-ready and free of secrets. `actions`: what the provider would accept now, where it says so.
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
    actions: frozenset[Capability] | None = None
    usage: ProviderUsage | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


class ImageState(StrEnum):
    READY = "ready"
    PENDING = "pending"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProviderImage:
    external_id: str
    name: str
    created_at: datetime | None = None
    region: str = ""
    state: ImageState = ImageState.READY
    size_gb: Decimal | None = None


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


class Provider(Protocol):
    """One adapter, made for one account. Synchronous; may block; raises only fleet.providers.errors.

    Every map from a raw word is read with `.get(raw, UNKNOWN)`: a word that a provider invents tomorrow must not stop a poll.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]
    capabilities: ClassVar[frozenset[Capability]]
    # Whether the same order, sent twice with one token, makes one machine: an order whose answer was lost may then be sent again.
    create_is_idempotent: ClassVar[bool]
    # Raised whenever a raw word is mapped differently: observations name the rule they were made under.
    rule_version: ClassVar[int]
    # What stopping means here, so that no button surprises anybody; empty where there is nothing to stop.
    endings: ClassVar[tuple[Ending, ...]]
    semantics: ClassVar[StopSemantics]

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


class FindsInstance(Provider, Protocol):
    """Capability FIND: what proof of an operation is read with."""

    def instance(self, ref: Ref) -> ProviderInstance | None:
        """None: the provider says that it does not exist. A failing read raises; it never becomes None."""
        ...


class Acts(Provider, Protocol):
    """Capabilities START, STOP, TERMINATE, REBOOT: accepted, not done. What is so already is accepted again; terminating what is gone, too."""

    def start(self, ref: Ref) -> None: ...

    def stop(self, ref: Ref) -> None:
        """In the way that stops the charge for GPUs, where the provider has several."""
        ...

    def terminate(self, ref: Ref) -> None: ...

    def reboot(self, ref: Ref) -> None: ...


class Creates(Provider, Protocol):
    """Capability CREATE."""

    def create(self, spec: CreateSpec, token: str) -> Ref:
        """Rents a machine. `token` goes where the provider shows it again in a listing (name, tag, label) and, where there is one, into
        its idempotency field: a machine whose answer was lost is found by it. Raises PartialCreate when an error names a machine.
        """
        ...


class ListsOffers(Provider, Protocol):
    """Capability OFFERS."""

    def offers(self, query: OfferQuery) -> Iterator[Offer]: ...


class SavesImage(Provider, Protocol):
    """Capability SAVE_IMAGE."""

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        """Begins an image of the machine; `state` PENDING until images() shows it READY."""
        ...


class TellsBalance(Provider, Protocol):
    """Capability BALANCE."""

    def balance(self) -> Money:
        """What is left of prepaid money."""
        ...


class TellsMetrics(Provider, Protocol):
    """Capability METRICS: providers whose measurements need calls of their own. Others fill ProviderInstance.usage."""

    def metrics(self, refs: Sequence[Ref]) -> Iterator[ProviderUsage]: ...


class TellsNotices(Provider, Protocol):
    """Capability NOTICES: interruptions and maintenance that are announced now."""

    def notices(self) -> Iterator[Notice]: ...


class TellsCharges(Provider, Protocol):
    """Capability COSTS."""

    def charges(self, start: datetime, end: datetime) -> Iterator[BilledCharge]:
        """What was charged within [start, end), as far as the provider has it; complete, or it raises. Lines that reach beyond it come whole."""
        ...
