"""How the machines of a job reach each other: the addresses and interfaces that were found, and how fast the network between them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job
from jobs.nodes.meeting import FAST_GBIT_PER_SECOND
from jobs.pages.panels.panel import JobPanel


@dataclass(frozen=True, slots=True)
class NodeWay:
    """`gbit_per_second` None: it was not measured. `to`: the machine that it sent to."""

    rank: int
    machine: str
    to: str
    address: str
    interface: str
    gbit_per_second: float | None
    is_slow: bool


def context(_request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any] | None:
    nodes = list(attempt.nodes.select_related("instance").order_by("rank"))
    found = {node.rank: node.facts.get("network", {}) for node in nodes}
    if len(nodes) < 2 or not all("address" in each for each in found.values()):
        return None
    names = {node.rank: node.instance.name for node in nodes}
    ways = [
        NodeWay(
            rank=rank,
            machine=names[rank],
            to=names[each["to"]],
            address=each["address"],
            interface=each["interface"],
            gbit_per_second=each["gbit_per_second"],
            is_slow=each["is_slow"],
        )
        for rank, each in found.items()
    ]
    return {"ways": ways, "is_slow": any(way.is_slow for way in ways), "fast": FAST_GBIT_PER_SECOND}


PANEL = JobPanel("nodes", "jobs/panels/nodes.html", context)
