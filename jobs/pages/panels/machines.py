"""The machines of an attempt: their ranks, how they stand, and how they are reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleet.inventory.models import SshHost
from fleet.inventory.remote import fingerprint
from fleet.teams.access import TeamRequest
from jobs.book.models import Attempt, Job, Node
from jobs.book.words import MARKS, error_text
from jobs.pages.panels.panel import JobPanel


@dataclass(frozen=True, slots=True)
class NodeLine:
    """`offered`: the fingerprint of a host key that waits for somebody's word."""

    node: Node
    mark: str
    error: str
    offered: str
    host: SshHost | None


def node_lines(attempt: Attempt) -> list[NodeLine]:
    nodes = list(attempt.nodes.select_related("instance").order_by("rank"))
    hosts = {
        host.instance_id: host
        for host in SshHost.objects.filter(instance__in=[node.instance_id for node in nodes]).exclude(offered="")
    }
    found = []
    for node in nodes:
        host = hosts.get(node.instance_id)
        waits = host is not None and node.error in {"host_key_new", "host_key_changed"}
        offered = fingerprint(host.offered) if waits and host else ""
        found.append(
            NodeLine(
                node, MARKS[node.state], error_text(node.error) if node.error else "", offered, host if waits else None
            )
        )
    return found


def context(_request: TeamRequest, _job: Job, attempt: Attempt) -> dict[str, Any]:
    return {"nodes": node_lines(attempt)}


PANEL = JobPanel("machines", "jobs/panels/machines.html", context)
