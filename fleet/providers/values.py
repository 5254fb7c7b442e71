"""The smallest words and values of the seam: money, names of machines, market and tenancy."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


def gettext_noop(text: str) -> str:
    """Marks a text for translation. Adapters know no Django: whoever shows the text translates it."""
    return text


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


@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Ref:
    """How a provider finds one machine; some need the region beside the id."""

    external_id: str
    region: str = ""
