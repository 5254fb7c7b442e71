"""How many alerts are open, and what they put at stake: for the rail, the strip and the inbox, read once a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from fleet.alerts.models import Alert, Severity, Signal
from fleet.alerts.rules.reporting import NETWORK_OUTAGE, PROVIDER_OUTAGE
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team

OUTAGES = frozenset({PROVIDER_OUTAGE, NETWORK_OUTAGE})


class OpenRow(NamedTuple):
    id: int
    severity: str
    is_snoozed: bool
    instance_id: int | None
    price_per_hour: Decimal | None
    currency: str
    # A signal of an outage that is open: its money is counted there.
    is_in_outage: bool = False


@dataclass(frozen=True)
class Tally:
    """All that is open in a team, snoozed or not."""

    rows: list[OpenRow]

    @cached_property
    def awake(self) -> list[OpenRow]:
        return [row for row in self.rows if not row.is_snoozed]

    @cached_property
    def snoozed(self) -> list[OpenRow]:
        return [row for row in self.rows if row.is_snoozed]

    @property
    def at_stake(self) -> dict[str, Decimal]:
        """An hour's money by currency. Alerts of one machine put the same money at stake: its largest counts."""
        return at_stake_of(self.awake)


def severity_counts(rows: Iterable[OpenRow]) -> list[tuple[Severity, int]]:
    found = Counter(row.severity for row in rows)
    return [(severity, found[severity]) for severity in Severity]


def at_stake_of(rows: Iterable[OpenRow]) -> dict[str, Decimal]:
    machines: dict[tuple[str, object], Decimal] = {}
    for row in rows:
        if row.price_per_hour and not row.is_in_outage:
            key = (row.currency, row.instance_id or f"alert {row.id}")
            machines[key] = max(row.price_per_hour, machines.get(key, row.price_per_hour))
    amounts: dict[str, Decimal] = {}
    for (currency, _machine), price in machines.items():
        amounts[currency] = amounts.get(currency, Decimal(0)) + price
    return amounts


def load_tally(team: Team) -> Tally:
    found = Alert.objects.filter(team=team, closed_at=None)
    rows = list(found.values_list("id", "severity", "snoozed_at", "instance_id", "price_per_hour", "currency", "cause"))
    outages = [pk for pk, _severity, snoozed_at, *_others, cause in rows if cause in OUTAGES and snoozed_at is None]
    out = set(Signal.objects.filter(alert__in=outages, cleared_at=None).values_list("scope", flat=True)) if outages else set()  # fmt: skip
    return Tally(
        [
            OpenRow(pk, severity, snoozed_at is not None, machine, price, currency, f"instance:{machine}" in out)
            for pk, severity, snoozed_at, machine, price, currency, _cause in rows
        ]
    )


def tally_of(request: TeamRequest) -> Tally:
    """Rail, strip and inbox of one page are the same reading."""
    loaded: Tally | None = getattr(request, "_alert_tally", None)
    if loaded is None:
        loaded = load_tally(request.team)
        request._alert_tally = loaded  # type: ignore[attr-defined]  # noqa: SLF001
    return loaded
