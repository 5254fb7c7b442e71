"""What people overlook when they rent, one function each. Pure: no Django, no clock.

Every function says None (fine), a warning, or that the offer does not say: silence is never taken for a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fleet.inventory.offers.need import MIB_PER_GIB, Facts, Need, Purpose
from fleet.providers.base import Tenancy

FEWEST_VCPUS = 8
LEAST_RAM_GIB = 64
LEAST_RAM_FOR_LARGE_DATA_GIB = 128
# A dataset that the smaller memory cannot even cache.
LARGE_DATA_GB = 100
LEAST_SYSTEM_DISK_GB = 100
SOLID_STATE = frozenset({"nvme", "ssd"})
# The data, its unpacked copy, and checkpoints beside it.
TIGHT_DISK_TIMES, ROOMY_DISK_TIMES = 3, 4
LEAST_NODE_GBPS = 10
LEAST_INTERNET_MBPS = 50
SHARING_HURTS = frozenset({Purpose.BENCHMARK, Purpose.PRODUCTION})


class Oversight(NamedTuple):
    """`known` False: the offer does not say. `code` with `told` says what; the words are elsewhere."""

    code: str
    known: bool
    told: Mapping[str, object]


def vcpus(facts: Facts, _need: Need) -> Oversight | None:
    if facts.vcpus is None:
        return Oversight("vcpus", False, {})
    return _below("vcpus", facts.vcpus, FEWEST_VCPUS)


def ram(facts: Facts, need: Need) -> Oversight | None:
    large = (need.dataset_gb or 0) >= LARGE_DATA_GB
    least = LEAST_RAM_FOR_LARGE_DATA_GIB if large else LEAST_RAM_GIB
    code = "ram_large_data" if large else "ram"
    if facts.ram_mib is None:
        return Oversight(code, False, {})
    return _below(code, facts.ram_mib / MIB_PER_GIB, least)


def system_disk(facts: Facts, _need: Need) -> Oversight | None:
    if facts.disk_kind and facts.disk_kind not in SOLID_STATE:
        return Oversight("disk_kind", True, {"kind": facts.disk_kind})
    if facts.disk_gb is not None and facts.disk_gb < LEAST_SYSTEM_DISK_GB:
        return _below("system_disk", facts.disk_gb, LEAST_SYSTEM_DISK_GB)
    return Oversight("system_disk", False, {}) if facts.disk_gb is None or not facts.disk_kind else None


def data_disk(facts: Facts, need: Need) -> Oversight | None:
    if not need.dataset_gb:
        return None
    if facts.disk_gb is None:
        return Oversight("data_disk", False, {})
    told = {"have": facts.disk_gb, "dataset": need.dataset_gb, "least": need.dataset_gb * TIGHT_DISK_TIMES}
    if facts.disk_gb < told["least"]:
        return Oversight("data_disk", True, told)
    roomy = need.dataset_gb * ROOMY_DISK_TIMES
    return Oversight("data_disk_tight", True, {**told, "least": roomy}) if facts.disk_gb < roomy else None


def node_network(facts: Facts, need: Need) -> Oversight | None:
    if need.nodes < 2:
        return None
    if facts.node_network_gbps is None:
        return Oversight("node_network", False, {})
    return _below("node_network", facts.node_network_gbps, LEAST_NODE_GBPS)


def internet(facts: Facts, _need: Need) -> Oversight | None:
    """Both directions count: data comes in, checkpoints go out."""
    speed = facts.internet_mbps
    if speed is not None and speed < LEAST_INTERNET_MBPS:
        return _below("internet", speed, LEAST_INTERNET_MBPS)
    both = facts.internet_down_mbps is not None and facts.internet_up_mbps is not None
    return None if both else Oversight("internet", False, {})


def tenancy(facts: Facts, need: Need) -> Oversight | None:
    if need.purpose not in SHARING_HURTS:
        return None
    exclusive = Tenancy(facts.tenancy).is_exclusive
    if exclusive is None:
        return Oversight("tenancy", False, {})
    return None if exclusive else Oversight("tenancy", True, {"purpose": need.purpose.value})


CHECKS: tuple[Callable[[Facts, Need], Oversight | None], ...] = (
    vcpus,
    ram,
    system_disk,
    data_disk,
    node_network,
    internet,
    tenancy,
)


def warnings_of(facts: Facts, need: Need) -> list[Oversight]:
    """What is too little first, then what the offer does not say."""
    found = [warning for check in CHECKS if (warning := check(facts, need)) is not None]
    return sorted(found, key=lambda warning: not warning.known)


def _below(code: str, have: float, least: float) -> Oversight | None:
    return Oversight(code, True, {"have": have, "least": least}) if have < least else None
