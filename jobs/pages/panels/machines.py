"""The machines of an attempt: their ranks, how each stands and is reached, and what their GPUs do now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max
from django.utils import timezone

from fleet.inventory.models import Instance, SshHost
from fleet.inventory.remote import fingerprint
from fleet.pages.machine import MachineView, Tile
from fleet.teams.access import TeamRequest
from fleet.telemetry.latest import machines_now
from fleet.telemetry.models import GpuLatest
from jobs.book.models import Attempt, Job, Node
from jobs.book.words import MARKS, error_text
from jobs.logs.models import LogChunk
from jobs.pages.panels.panel import JobPanel

# Of more machines than these only the first show their GPUs at once.
OPEN_MACHINES = 2
ASKS_FOR_A_WORD = frozenset({"host_key_new", "host_key_changed"})


@dataclass(frozen=True, slots=True)
class RankLine:
    """One GPU of a machine. `rank`: of the process that uses it, where there is one for each GPU; "" = not known."""

    tile: Tile
    rank: str

    @property
    def used_bytes(self) -> int | None:
        latest = self.tile.now.latest
        return latest.memory_used_bytes if latest and self.tile.memory_percent is not None else None

    @property
    def celsius(self) -> float | None:
        latest = self.tile.now.latest
        if not isinstance(latest, GpuLatest) or self.tile.busy_percent is None:
            return None
        return latest.temperature_celsius


@dataclass(frozen=True, slots=True)
class NodeLine:
    """`offered`: the fingerprint of a host key that waits for somebody's word. `ranks`: empty once it has ended, for its GPUs do something else."""

    node: Node
    view: MachineView
    offered: str
    wrote_at: datetime | None
    ranks: Sequence[RankLine]
    is_open: bool

    @property
    def mark(self) -> str:
        return MARKS[self.node.state]

    @property
    def error(self) -> str:
        return error_text(self.node.error) if self.node.error else ""


def node_lines(job: Job, attempt: Attempt, now: datetime) -> list[NodeLine]:
    nodes = list(attempt.nodes.order_by("rank"))
    ids = [node.instance_id for node in nodes]
    machines = Instance.objects.filter(pk__in=ids).select_related("account", "owner", "project")
    views = {one.instance.pk: MachineView(one, now) for one in machines_now(machines, now=now)}
    hosts = {row.instance_id: row for row in SshHost.objects.filter(instance__in=ids).exclude(offered="")}
    wrote = dict(LogChunk.objects.filter(node__in=nodes).values_list("node").annotate(at=Max("read_at")))
    return [
        NodeLine(
            node,
            views[node.instance_id],
            _offered(node, hosts),
            wrote.get(node.pk),
            _ranks(job, node, views[node.instance_id]) if attempt.ended_at is None else (),
            place < OPEN_MACHINES,
        )
        for place, node in enumerate(nodes)
    ]


def _offered(node: Node, hosts: Mapping[int, SshHost]) -> str:
    host = hosts.get(node.instance_id)
    return fingerprint(host.offered) if host is not None and node.error in ASKS_FOR_A_WORD else ""


def _ranks(job: Job, node: Node, view: MachineView) -> list[RankLine]:
    """Launchers give the GPUs of a machine to their processes in order."""
    count = len(view.tiles)
    known = job.processes_per_node == count
    return [RankLine(tile, str(node.rank * count + place) if known else "") for place, tile in enumerate(view.tiles)]


def context(_request: TeamRequest, job: Job, attempt: Attempt) -> dict[str, Any]:
    return {"nodes": node_lines(job, attempt, timezone.now())}


PANEL = JobPanel("machines", "jobs/panels/machines.html", context)
