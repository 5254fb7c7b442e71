"""Rackrent's own trouble: every team that depends on it hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from fleet.alerts.findings import WARNING, Finding
from fleet.alerts.rules.base import Limits, RuleKind
from fleet.alerts.snapshot import Snapshot, Trouble

OWN, CAUSE, SUBJECT = "own_trouble", "rackrent.trouble", "rackrent"


def own_trouble(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterator[Finding]:
    return (finding_of(trouble) for trouble in snapshot.troubles)


def finding_of(trouble: Trouble) -> Finding:
    return Finding(
        cause=CAUSE,
        subject=SUBJECT,
        kind=OWN,
        severity=trouble.severity,
        detail=trouble.part,
        since=trouble.since,
        values={"part": trouble.part, **trouble.values},
    )


RULES = (RuleKind(OWN, CAUSE, WARNING, own_trouble, for_seconds=300, clear_seconds=30),)
