"""Under which addresses the machines of a job can reach each other. Pure.

Only addresses that an interface of the machine has: NCCL and gloo tell each other the address of an interface, so one that a provider's
translation leads to the machine would let ranks find each other and then hang.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,14}")
# What containers and virtual machines of the machine itself hang on: the same on every machine, and a way to none.
_OWN_BRIDGES = re.compile(r"(docker|virbr|veth|br-|cni|flannel|cali|lxc|podman)")
MOST_ADDRESSES = 6


@dataclass(frozen=True, slots=True)
class Interface:
    """`prefix`: length of its network's. `speed_mbit` None: it does not say."""

    name: str
    address: str
    prefix: int
    speed_mbit: int | None = None

    @property
    def network(self) -> str:
        return str(ipaddress.ip_interface(f"{self.address}/{self.prefix}").network)

    @property
    def is_private(self) -> bool:
        return ipaddress.ip_address(self.address).is_private


def interfaces_of(lines: Iterable[str]) -> list[Interface]:
    """`name address prefix speed`, as on_nodes.py says it. What is none is left out: a machine may say anything."""
    found = [interface for line in lines if (interface := _interface(line)) is not None]
    return found[:32]


def _interface(line: str) -> Interface | None:
    try:
        name, address, prefix, speed = line.split(" ")
        parsed = ipaddress.ip_interface(f"{ipaddress.ip_address(address)}/{int(prefix)}").ip
        mbit = int(speed)
    except ValueError:
        return None
    if parsed.is_loopback or parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified:
        return None
    if not _NAME.fullmatch(name) or _OWN_BRIDGES.match(name):
        return None
    return Interface(name, str(parsed), int(prefix), mbit if 0 < mbit < 10_000_000 else None)


def candidates(machines: Sequence[Sequence[Interface]]) -> list[list[Interface]]:
    """For each machine, in the order in which they are tried: networks that all of them are in first, the private and the fast ones before the others."""
    shared = _shared_networks(machines)
    return [sorted(machine, key=lambda each: _place(each, shared))[:MOST_ADDRESSES] for machine in machines]


def _shared_networks(machines: Sequence[Sequence[Interface]]) -> dict[str, int]:
    """Network -> speed of the slowest interface in it, of those where every machine has an address of its own."""
    every = [{each.network: each for each in machine} for machine in machines]
    common = set.intersection(*(set(each) for each in every)) if every else set()
    return {
        network: min(each[network].speed_mbit or 0 for each in every)
        for network in common
        if len({each[network].address for each in every}) == len(every)
    }


def _place(interface: Interface, shared: dict[str, int]) -> tuple[bool, bool, int, bool, str]:
    speed = shared.get(interface.network, 0)
    return interface.network not in shared, not interface.is_private, -speed, ":" in interface.address, interface.name
