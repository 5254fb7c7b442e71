"""Lists of accounts that nobody believes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from fleet.alerts.findings import WARNING, Finding, account_subject
from fleet.alerts.rules.base import Limits, RuleKind
from fleet.alerts.snapshot import Account, Machine, Snapshot

LOST, CAUSE = "list_lost", "account.list_lost"


def list_lost(snapshot: Snapshot, _limits: Limits, _now: datetime) -> Iterator[Finding]:
    """One alert an account, however many machines its list leaves out."""
    doubted: dict[int, list[Machine]] = defaultdict(list)
    for machine in snapshot.machines:
        if machine.doubted_since is not None:
            doubted[machine.account_id].append(machine)
    for account in snapshot.accounts:
        if machines := doubted.get(account.pk):
            yield _finding(account, machines, known=sum(row.account_id == account.pk for row in snapshot.machines))


def _finding(account: Account, machines: list[Machine], *, known: int) -> Finding:
    prices = [row.price_per_hour for row in machines if row.currency == account.currency and row.price_per_hour]
    return Finding(
        cause=CAUSE,
        subject=account_subject(account.pk),
        kind=LOST,
        severity=WARNING,
        since=min(row.doubted_since for row in machines if row.doubted_since is not None),
        account_id=account.pk,
        price_per_hour=sum(prices, Decimal(0)) if prices else None,
        currency=account.currency,
        values={"missing": len(machines), "known": known},
    )


RULES = (RuleKind(LOST, CAUSE, WARNING, list_lost, for_seconds=120, clear_seconds=0),)
