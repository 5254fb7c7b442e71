"""Agents that work and need attention all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from fleet.alerts.findings import NOTE, WARNING, Finding
from fleet.alerts.rules.base import Limits, RuleKind, Threshold, fires, machine_finding
from fleet.alerts.rules.reporting import MISSED_SECONDS
from fleet.alerts.snapshot import Agent, Machine, Snapshot

OUTDATED, SKEW, BACKLOG, CAUSE = "agent_outdated", "clock_skew", "agent_backlog", "agent.trouble"
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
HYSTERESIS_SHARE = 0.5


def outdated(snapshot: Snapshot, _limits: Limits, now: datetime) -> Iterator[Finding]:
    newest = version_of(snapshot.agent_version)
    for machine, agent in _speaking(snapshot):
        running = version_of(agent.version)
        if newest and running and running < newest:
            values = {"version": agent.version, "newest": snapshot.agent_version}
            yield _of(machine, OUTDATED, NOTE, now, values=values)


def version_of(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with; () for anything else, which cannot be compared."""
    found = _NUMBERS.match(text)
    # Digits without end would take long to turn into a number; no version has them.
    return tuple(int(part) for part in found[0].split(".")) if found and len(found[0]) < 40 else ()


def clock_skew(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    for machine, agent in _speaking(snapshot):
        if agent.clock_skew_seconds is None:
            continue
        skew, is_open = abs(agent.clock_skew_seconds), snapshot.is_open(CAUSE, SKEW, machine.subject)
        if fires(skew, limits["seconds"], limits["seconds"] * HYSTERESIS_SHARE, is_open=is_open):
            yield _of(machine, SKEW, WARNING, now, values={"seconds": round(agent.clock_skew_seconds)})


def backlog(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    """Readings wait on the machine: it is heard of and its batches are not taken."""
    for machine, agent in _speaking(snapshot):
        queued = agent.oldest_queued_at
        if queued is not None and now - queued > timedelta(minutes=limits["minutes"]):
            yield _of(machine, BACKLOG, WARNING, now, values={"oldest_at": queued.isoformat(timespec="minutes")})


def _speaking(snapshot: Snapshot) -> Iterator[tuple[Machine, Agent]]:
    for machine in snapshot.machines:
        if machine.agent is not None and machine.powered is not False:
            yield machine, machine.agent


def _of(machine: Machine, kind: str, severity: str, now: datetime, *, values: dict[str, Any]) -> Finding:
    assert machine.agent is not None
    quiet = (now - machine.agent.heard_at).total_seconds() > MISSED_SECONDS
    # Nothing is lost by it yet: no money is at stake.
    return replace(machine_finding(machine, kind, CAUSE, severity, values=values, keeps=quiet), price_per_hour=None)


RULES = (
    RuleKind(OUTDATED, CAUSE, NOTE, outdated, for_seconds=3_600),
    RuleKind(SKEW, CAUSE, WARNING, clock_skew, (Threshold("seconds", 30, 5, 3_600, "seconds"),), for_seconds=300),
    RuleKind(BACKLOG, CAUSE, WARNING, backlog, (Threshold("minutes", 10, 2, 1_440, "minutes"),), for_seconds=60),
)
