"""What was asked of providers and is not proved: a machine that was told to stop and is billed on, a launch that never comes, a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from fleet.alerts.findings import URGENT, WARNING, Finding, instance_subject
from fleet.alerts.rules.base import Limits, RuleKind, Threshold
from fleet.alerts.snapshot import Asked, Snapshot

STOP, WAIT, FAILED = "stop_unconfirmed", "operation_unconfirmed", "operation_failed"
STOP_CAUSE, WAIT_CAUSE, FAILED_CAUSE = "operation.stop", "operation.unconfirmed", "operation.failed"
ENDS = frozenset({"stop", "terminate"})


def stop_unconfirmed(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    """The money since it was asked for is at stake, whatever the machine is shown as."""
    for asked in snapshot.asked:
        if asked.is_open and asked.kind in ENDS and _late(asked, limits, now):
            yield _finding(asked, STOP, STOP_CAUSE, URGENT)


def operation_unconfirmed(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    for asked in snapshot.asked:
        if asked.is_open and asked.kind not in ENDS and _late(asked, limits, now):
            yield _finding(asked, WAIT, WAIT_CAUSE, WARNING)


def operation_failed(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    """A refusal is told for so many hours, or until the next act on the machine. One that should have ended a machine is urgent."""
    for asked in snapshot.asked:
        if asked.failed_at is not None and now - asked.failed_at <= timedelta(hours=limits["hours"]):
            yield _finding(asked, FAILED, FAILED_CAUSE, URGENT if asked.kind in ENDS else WARNING)


def _late(asked: Asked, limits: Limits, now: datetime) -> bool:
    return now - asked.requested_at >= timedelta(minutes=limits["minutes"])


def _finding(asked: Asked, kind: str, cause: str, severity: str) -> Finding:
    """One for each machine; a launch without one is its own subject."""
    subject = f"operation:{asked.pk}" if asked.instance_id is None else instance_subject(asked.instance_id)
    return Finding(
        cause=cause,
        subject=subject,
        kind=kind,
        severity=severity,
        detail=f"operation:{asked.pk}",
        since=asked.requested_at,
        instance_id=asked.instance_id,
        account_id=asked.account_id,
        price_per_hour=asked.price_per_hour,
        currency=asked.currency,
        values=_values(asked),
    )


def _values(asked: Asked) -> dict[str, Any]:
    return {
        "act": asked.kind,
        "machine": asked.machine,
        "asked_at": asked.requested_at.isoformat(timespec="minutes"),
        "attempts": asked.attempts,
        "seen": asked.seen_state,
        "billing": asked.seen_billing,
        "error": asked.error_kind,
    }


RULES = (
    RuleKind(
        STOP, STOP_CAUSE, URGENT, stop_unconfirmed, (Threshold("minutes", 5, 1, 1_440, "minutes"),), clear_seconds=0
    ),
    RuleKind(
        WAIT,
        WAIT_CAUSE,
        WARNING,
        operation_unconfirmed,
        (Threshold("minutes", 30, 1, 1_440, "minutes"),),
        clear_seconds=0,
    ),
    RuleKind(
        FAILED, FAILED_CAUSE, WARNING, operation_failed, (Threshold("hours", 24, 1, 168, "hours"),), clear_seconds=0
    ),
)
