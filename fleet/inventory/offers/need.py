"""What somebody looks for, and what of an offer it is held against. Pure: no Django, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

MIB_PER_GIB = 1024


class Purpose(StrEnum):
    EXPERIMENT = "experiment"
    TRAINING = "training"
    BENCHMARK = "benchmark"
    PRODUCTION = "production"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Sizes as people say them: memory in GiB, data in GB. None and "" = not asked."""

    gpu: str = ""
    gpus: int | None = None
    nodes: int = 1
    gpu_memory_gib: int | None = None
    total_memory_gib: int | None = None
    dataset_gb: int | None = None
    purpose: Purpose | None = None


class Facts(NamedTuple):
    """What an offer says; None and "" = it does not say. `price_per_hour` of the whole machine, in one `currency`."""

    gpu_model: str = ""
    gpu_count: int | None = None
    gpu_memory_mib: int | None = None
    price_per_hour: Decimal | None = None
    currency: str = "USD"
    internet_down_mbps: float | None = None
    internet_up_mbps: float | None = None
    node_network_gbps: float | None = None
    vcpus: int | None = None
    ram_mib: int | None = None
    disk_gb: int | None = None
    disk_kind: str = ""
    tenancy: str = "unknown"

    @property
    def internet_mbps(self) -> float | None:
        """The slower direction; where only one is told, that one."""
        told = [speed for speed in (self.internet_down_mbps, self.internet_up_mbps) if speed is not None]
        return min(told) if told else None

    @property
    def total_memory_gib(self) -> float | None:
        if self.gpu_count is None or self.gpu_memory_mib is None:
            return None
        return self.gpu_count * self.gpu_memory_mib / MIB_PER_GIB


FACT_NAMES = Facts._fields  # noqa: SLF001 - a named tuple's own, whatever its first letter says


def price_for(facts: Facts, need: Need) -> Decimal | None:
    """An hour of one GPU that is asked for: of a machine with more than that, the others are paid for too."""
    used = need.gpus or facts.gpu_count
    if facts.price_per_hour is None or not used:
        return None
    return facts.price_per_hour / used
