"""What the machines of a job said when they were asked to meet, and whether a job may be launched on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.nodes.addresses import Interface

# Below it, gradients of a model of some size take longer than its steps (docs/jobs.md).
FAST_GBIT_PER_SECOND = 10.0
_REACH = re.compile(r"reach\.(\d{1,3})\.(\d{1,2})")
_SAID = frozenset({"ok", "refused", "timeout", "stranger"})
# More than any link carries: a machine may say anything.
_MOST_BYTES = 10**14


@dataclass(frozen=True, slots=True)
class Said:
    """Of one machine. `reach`: (rank, place of the address) -> ok, refused, timeout, stranger (somebody else answers there).
    `closed`: the port of the job is open, ports that the system chooses are not. `port`: why it could not listen itself.
    """

    reach: Mapping[tuple[int, int], str] = field(default_factory=dict)
    gbit_per_second: float | None = None
    closed: bool = False
    port: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """How a machine is reached by all others; `gbit_per_second` is what it sent to the next."""

    address: str
    interface: str
    gbit_per_second: float | None

    @property
    def is_slow(self) -> bool:
        return self.gbit_per_second is not None and self.gbit_per_second < FAST_GBIT_PER_SECOND


@dataclass(frozen=True, slots=True)
class Obstacle:
    """`code`: no_interface, port_taken (on `rank`), no_way (from `rank` to `to`), ports_closed (as no_way, at ports that the system chooses)."""

    code: str
    rank: int
    to: int | None = None


def said_of(answer: Mapping[str, str]) -> Said:
    reach = {
        (int(match[1]), int(match[2])): said
        for name, said in answer.items()
        if (match := _REACH.fullmatch(name)) and said in _SAID
    }
    return Said(reach, _rate(answer), "closed" in answer, answer.get("port", "")[:80])


def _rate(answer: Mapping[str, str]) -> float | None:
    try:
        sent, took = int(answer["sent"]), float(answer["took"])
    except (KeyError, ValueError):
        return None
    return round(sent * 8 / took / 1e9, 2) if 0 < sent < _MOST_BYTES and took >= 0.01 else None


def judge(tried: Sequence[Sequence[Interface]], said: Sequence[Said]) -> list[Way] | list[Obstacle]:
    """`tried`: the addresses of each machine in the order that was tried. A way for each, or everything that stands in between."""
    obstacles = _obstacles(tried, said)
    if obstacles:
        return obstacles
    found = [_meeting_place(rank, tried, said) for rank in range(len(tried))]
    return [
        Way(each.address, each.name, one.gbit_per_second)
        for each, one in zip(found, said, strict=True)
        if each is not None
    ]


def _obstacles(tried: Sequence[Sequence[Interface]], said: Sequence[Said]) -> list[Obstacle]:
    ranks = range(len(tried))
    found = [Obstacle("no_interface", rank) for rank in ranks if not tried[rank]]
    found += [Obstacle("port_taken", rank) for rank in ranks if said[rank].port]
    if found:
        return found
    for to in ranks:
        if _meeting_place(to, tried, said) is None:
            found += [Obstacle("no_way", rank, to) for rank in ranks if rank != to and not _reaches(said[rank], to)]
            # Each is reached by each, but not at one address that all of them could be told.
            found = found or [Obstacle("no_way", rank, to) for rank in ranks if rank != to]
    closed = [rank for rank in ranks if said[rank].closed]
    return found or [Obstacle("ports_closed", rank, (rank + 1) % len(tried)) for rank in closed]


def _reaches(said: Said, to: int) -> bool:
    return any(rank == to and answer == "ok" for (rank, _place), answer in said.reach.items())


def _meeting_place(to: int, tried: Sequence[Sequence[Interface]], said: Sequence[Said]) -> Interface | None:
    """The first of its addresses at which every other reached it."""
    others = [each for rank, each in enumerate(said) if rank != to]
    for place, interface in enumerate(tried[to]):
        if all(each.reach.get((to, place)) == "ok" for each in others):
            return interface
    return None


def order_for(rank: int, tried: Sequence[Sequence[Interface]], *, port: int, token: str) -> dict[str, Any]:
    """What on_nodes.py is told on one of them."""
    return {
        "rank": rank,
        "peers": [[each.address for each in machine] for machine in tried],
        "port": port,
        "token": token,
        "wait_seconds": WAIT_SECONDS,
        "send_seconds": SEND_SECONDS,
    }


# The others may be reached over SSH so much later; what nothing answers at is given up then.
WAIT_SECONDS = 20.0
SEND_SECONDS = 2.0
