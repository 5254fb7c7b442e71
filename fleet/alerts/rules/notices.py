"""What a provider announced for a machine: spot capacity taken back, maintenance, a host that goes, a lock for want of payment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from fleet.alerts.findings import NOTE, URGENT, WARNING, Finding, instance_subject
from fleet.alerts.rules.base import Limits, RuleKind
from fleet.alerts.snapshot import Snapshot

KIND, CAUSE = "provider_notice", "machine.notice"
SEVERITIES = {"interruption": URGENT, "maintenance": WARNING, "retirement": WARNING, "unpaid": WARNING}


def provider_notice(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterator[Finding]:
    """For as long as the provider lists it."""
    for notice in snapshot.notices:
        yield Finding(
            cause=CAUSE,
            subject=instance_subject(notice.instance_id),
            kind=KIND,
            severity=SEVERITIES.get(notice.kind, NOTE),
            detail=f"notice:{notice.pk}",
            since=notice.first_seen_at,
            instance_id=notice.instance_id,
            account_id=notice.account_id,
            values={
                "notice": notice.kind,
                "starts_at": notice.starts_at.isoformat(timespec="minutes") if notice.starts_at else "",
                "says": notice.text,
            },
        )


RULES = (RuleKind(KIND, CAUSE, WARNING, provider_notice, clear_seconds=0),)
