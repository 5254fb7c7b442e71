"""What listings show of machines and nobody may have noticed: prices, leases, machines that nobody registered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from fleet.alerts.findings import NOTE, URGENT, WARNING, Finding, account_subject
from fleet.alerts.rules.base import Limits, RuleKind, Threshold, machine_finding
from fleet.alerts.snapshot import Machine, PriceChange, Snapshot

PRICE, LEASE, UNMANAGED = "price_changed", "lease_ending", "unmanaged"


def price_changed(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    """A change is told for so many hours; going back to the price before ends it too."""
    for machine in snapshot.machines:
        change = machine.price_change
        if change is None or not change.before or now - change.at > timedelta(hours=limits["hours"]):
            continue
        percent = percent_of(change)
        if abs(percent) >= limits["percent"]:
            values = {"before": str(change.before), "after": str(change.after), "percent": round(percent)}
            values["currency"] = machine.currency
            severity = WARNING if percent > 0 else NOTE
            yield machine_finding(machine, PRICE, "machine.price", severity, since=change.at, values=values)


def percent_of(change: PriceChange) -> float:
    return float(100 * (change.after - change.before) / change.before)


def unmanaged(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterator[Finding]:
    """One alert an account, however many there are."""
    accounts = {account.pk: account for account in snapshot.accounts}
    for machine in snapshot.machines:
        account = accounts.get(machine.account_id)
        if machine.managed or machine.powered is False or account is None:
            continue
        # What a listing last showed is all that is known while it fails: the machine is not gone for that.
        yield Finding(
            cause="machine.unmanaged",
            subject=account_subject(account.pk),
            kind=UNMANAGED,
            severity=NOTE,
            detail=machine.subject,
            since=machine.first_seen_at,
            account_id=account.pk,
            scope=machine.subject,
            price_per_hour=machine.price_per_hour,
            currency=machine.currency,
            values={"machine": machine.name},
        )


def lease_ending(snapshot: Snapshot, limits: Limits, now: datetime) -> Iterator[Finding]:
    for machine in snapshot.machines:
        if machine.expires_at is None or machine.powered is False:
            continue
        hours = (machine.expires_at - now).total_seconds() / 3_600
        if hours <= limits["hours"]:
            yield _lease(machine, machine.expires_at, urgent=hours <= limits["urgent_hours"])


def _lease(machine: Machine, ends_at: datetime, *, urgent: bool) -> Finding:
    values = {"ends_at": ends_at.isoformat()}
    return machine_finding(machine, LEASE, "machine.lease", URGENT if urgent else WARNING, values=values)


RULES = (
    RuleKind(
        PRICE,
        "machine.price",
        WARNING,
        price_changed,
        (Threshold("percent", 5, 0, 1_000, "percent"), Threshold("hours", 24, 1, 168, "hours")),
        clear_seconds=0,
        history="observations",
    ),
    RuleKind(UNMANAGED, "machine.unmanaged", NOTE, unmanaged, for_seconds=900, clear_seconds=0),
    RuleKind(
        LEASE,
        "machine.lease",
        WARNING,
        lease_ending,
        (Threshold("hours", 24, 1, 720, "hours"), Threshold("urgent_hours", 2, 0, 720, "hours")),
        clear_seconds=0,
    ),
)
