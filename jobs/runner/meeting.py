"""The machines of one job find out how they reach each other, before anything is launched: their rows in, orders and verdict out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from secrets import token_hex
from typing import Any

from django.db import transaction

from jobs.book.events import note
from jobs.book.models import Attempt, JobState, Node
from jobs.nodes.addresses import Interface, candidates, interfaces_of
from jobs.nodes.meeting import Obstacle, Way, judge, order_for, said_of
from jobs.runner.bundle import rendezvous_port
from jobs.runner.claims import still_mine
from jobs.runner.course import Act
from jobs.runner.visit import Report

# Of Node.facts: {"interfaces": [[name, address, prefix, speed]], "address", "interface", "gbit_per_second", "to"}.
KEY = "network"
REFUSED = frozenset({"no_interface", "port_taken", "no_way", "ports_closed"})


def has_said(node: Node) -> bool:
    return "interfaces" in node.facts.get(KEY, {})


def has_met(node: Node) -> bool:
    return "address" in node.facts.get(KEY, {})


def note_interfaces(node: Node, report: Report) -> None:
    said = [list(astuple(each)) for each in interfaces_of(report.interfaces)]
    node.facts = {**node.facts, KEY: {"interfaces": said}}


def tried_of(nodes: Sequence[Node]) -> list[list[Interface]]:
    """The same from the same rows, in every process."""
    return candidates([[Interface(*each) for each in node.facts.get(KEY, {}).get("interfaces", [])] for node in nodes])


def orders_of(attempt: Attempt, nodes: Sequence[Node]) -> Mapping[int, Mapping[str, Any]]:
    """By the node's number. The token is theirs alone, this once."""
    tried, token, port = tried_of(nodes), token_hex(16), rendezvous_port(attempt)
    return {node.pk: order_for(node.rank, tried, port=port, token=token) for node in nodes}


def hosts_of(nodes: Sequence[Node]) -> list[str]:
    """Under which they reach each other; a machine by itself is its own loopback."""
    if len(nodes) == 1:
        return ["127.0.0.1"]
    return [str(node.facts[KEY]["address"]) for node in nodes]


def interface_of(node: Node) -> str:
    return str(node.facts.get(KEY, {}).get("interface", ""))


def settle(attempt: Attempt, nodes: Sequence[Node], reports: Sequence[Report], *, at: datetime) -> None:
    """Only what all of them said in one round counts: who waited for a machine that was not reached says nothing of the way to it."""
    met = {report.node: report.met for report in reports if report.act is Act.MEET and report.met is not None}
    if len(met) != len(nodes):
        return
    verdict = judge(tried_of(nodes), [said_of(met[node.pk] or {}) for node in nodes])
    with transaction.atomic():
        if not still_mine(attempt):
            return
        locked = list(attempt.nodes.select_for_update(of=("self",)).select_related("instance").order_by("rank"))
        for one in verdict:
            if isinstance(one, Obstacle):
                _refuse(attempt, locked, one, at)
        ways = [one for one in verdict if isinstance(one, Way)]
        for node, way in zip(locked, ways, strict=False):
            _keep(attempt, node, locked[(node.rank + 1) % len(locked)], way, at)


def _refuse(attempt: Attempt, nodes: Sequence[Node], obstacle: Obstacle, at: datetime) -> None:
    node, port = nodes[obstacle.rank], rendezvous_port(attempt)
    detail = f"{port}"
    if obstacle.to is not None:
        other = nodes[obstacle.to]
        addresses = ", ".join(each.address for each in tried_of(nodes)[obstacle.to])
        detail = f"{node.instance.name} → {other.instance.name} ({addresses}): {port}"
    node.state, node.error, node.error_detail = JobState.FAILED, obstacle.code, detail[:300]
    node.save(update_fields=["state", "error", "error_detail"])
    note(attempt.job, "no_way", at=at, attempt=attempt, node=node, detail=detail, values={"error": obstacle.code})


def _keep(attempt: Attempt, node: Node, following: Node, way: Way, at: datetime) -> None:
    found = {
        "address": way.address,
        "interface": way.interface,
        "gbit_per_second": way.gbit_per_second,
        "to": following.rank,
        "is_slow": way.is_slow,
    }
    node.facts = {**node.facts, KEY: {**node.facts.get(KEY, {}), **found}}
    node.save(update_fields=["facts"])
    if way.is_slow:
        detail = f"{node.instance.name} → {following.instance.name}: {way.gbit_per_second:g} Gbit/s"
        note(attempt.job, "slow_network", at=at, attempt=attempt, node=node, detail=detail)
