"""What can be rented, and what is ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from fleet.providers.values import Market, Money, Tenancy


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """What to look for; empty = anything. An adapter may answer with more than was asked: the caller filters again."""

    gpu_model: str = ""
    gpu_count: int | None = None
    region: str = ""
    market: Market | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something that can be rented now. None = the provider does not say. `price` is for the whole machine, an hour.

    `external_id` is what `create` takes; with `region` and `market` it names the offer. `available` None: only trying tells.
    """

    external_id: str
    instance_type: str
    region: str = ""
    market: Market = Market.ON_DEMAND
    tenancy: Tenancy = Tenancy.UNKNOWN
    price: Money | None = None
    storage_price_per_gb_month: Money | None = None
    available: bool | None = None
    gpu_raw: str = ""
    gpu_model: str = ""
    gpu_count: int | None = None
    gpu_memory_mib: int | None = None
    gpu_interconnect: str = ""  # "nvlink", "pcie" or "" where unknown
    vcpus: int | None = None
    ram_mib: int | None = None
    disk_gb: int | None = None
    disk_kind: str = ""  # "nvme", "ssd", "hdd" or "" where unknown
    internet_down_mbps: float | None = None
    internet_up_mbps: float | None = None
    node_network_gbps: float | None = None
    reliability: float | None = None  # 0 to 1, as the provider states it
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSpec:
    """What to rent. `offer_id` is an Offer's external_id; `user_data` a script that the machine runs at its first start."""

    name: str
    offer_id: str
    region: str = ""
    market: Market = Market.ON_DEMAND
    gpu_count: int = 1
    image_id: str = ""
    disk_gb: int | None = None
    max_price_per_hour: Decimal | None = None
    ssh_public_key: str = ""
    user_data: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
