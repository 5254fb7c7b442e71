"""Looks at every balance, and tells of those that do not last. What was paid in clears it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert
from fleet.costs.balances.models import IdleBurn
from fleet.costs.balances.shown import Runway, prepaid_accounts, runways_of
from fleet.costs.balances.words import CAUSE, SIGNAL, values_of
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.prices import price_now
from fleet.states import IDLE_MONEY
from fleet.teams.models import Team
from fleet.telemetry.latest import machines_now

logger = logging.getLogger(__name__)


def judge_balances(*, now: datetime) -> int:
    """Returns how many are low. A team that cannot be judged keeps no other from it."""
    low = 0
    for team in Team.objects.filter(accounts__disconnected_at=None).distinct().order_by("pk"):
        try:
            note_idle(prepaid_accounts(team), now=now)
            low += judge_team(team=team, now=now)
        except Exception:
            logger.exception("The balances of team %d could not be judged", team.pk)
    return low


def judge_team(*, team: Team, now: datetime) -> int:
    known = Alert.objects.filter(team=team, cause=CAUSE, closed_at=None).values_list("subject", "severity")
    stands = dict(known)
    runways = runways_of(team, now)
    # What nobody can tell leaves what stands.
    low = [_tell(one, stands.get(subject_of(one.account), ""), now) for one in runways if one.lasts is not None]
    for subject in stands.keys() - {subject_of(one.account) for one in runways}:
        clear_event(team=team, cause=CAUSE, subject=subject, now=now, why="removed")
    return sum(low)


def subject_of(account: ProviderAccount) -> str:
    return f"account:{account.pk}"


def _tell(one: Runway, stands: str, now: datetime) -> bool:
    severity, subject = one.severity(stands), subject_of(one.account)
    if severity:
        raise_event(
            team=one.account.team,
            cause=CAUSE,
            subject=subject,
            severity=severity,
            signal=SIGNAL,
            account=one.account,
            values=values_of(one),
            price_per_hour=one.burn_per_hour,
            currency=one.currency,
            now=now,
        )
    elif stands:
        clear_event(team=one.account.team, cause=CAUSE, subject=subject, now=now)
    return bool(severity)


def note_idle(accounts: Iterable[ProviderAccount], *, now: datetime) -> None:
    """What an hour of those machines costs all of whose GPUs do nothing, as their last readings say. Unknown is not idle."""
    rows = Instance.objects.filter(account__in=[account.pk for account in accounts], gone_at=None)
    amounts: dict[int, dict[str, Decimal]] = {account.pk: {} for account in accounts}
    for machine in machines_now(list(rows), now=now, brief=True):
        price = price_now(machine.instance)
        if price and machine.gpus and all(tile.verdict.state in IDLE_MONEY for tile in machine.gpus):
            sums = amounts[machine.instance.account_id]
            sums[machine.instance.currency] = sums.get(machine.instance.currency, Decimal(0)) + price
    IdleBurn.objects.bulk_create(
        [
            IdleBurn(account_id=pk, at=now, amounts={name: str(amount) for name, amount in sums.items()})
            for pk, sums in amounts.items()
        ],
        update_conflicts=True,
        unique_fields=["account"],
        update_fields=["at", "amounts"],
    )
