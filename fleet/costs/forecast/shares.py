"""What of each machine a filtered forecast is about: as its money was split in the last days, else as it is attributed now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.forecast.rates import Charged
from fleet.costs.spend.spend import By, Spend, Where, spend
from fleet.inventory.models import Instance
from fleet.teams.models import Team

Key = tuple[int, int | None]
LOOKED_AT = timedelta(days=1)
ONE, NOTHING = Decimal(1), Decimal(0)


def shares_of(*, team: Team, charged: Charged, where: Where, today: date, now: datetime) -> dict[Key, Decimal]:
    """(account, machine) -> 0 to 1; a machine that is not in it has no part. A constant number of queries."""
    start, end, by = today - LOOKED_AT, today + timedelta(days=1), (By.ACCOUNT, By.MACHINE)
    whole = amounts(spend(team=team, start=start, end=end, by=by))
    ours = amounts(spend(team=team, start=start, end=end, by=by, where=where))
    shares = {
        key: min(max(ours.get(key, NOTHING) / amount, NOTHING), ONE) for key, amount in whole.items() if amount > 0
    }
    keys = {(account, rate.machine) for account, rate in charged.rates}
    fresh = {machine for key in keys - set(shares) if (machine := key[1]) is not None}
    return shares | attributed(fresh, where, now)


def amounts(found: Spend) -> dict[Key, Decimal]:
    return {(int(str(account)), machine): one.total for (account, machine), one in found.rows.items()}  # type: ignore[misc]  # ids


def attributed(machines: Collection[int], where: Where, now: datetime) -> dict[Key, Decimal]:
    """Machines that have cost nothing yet, by whose they are."""
    spans = {
        span.instance_id: span for span in AttributionSpan.objects.filter(instance__in=machines, period__contains=now)
    }
    found: dict[Key, Decimal] = {}
    for machine in Instance.objects.filter(pk__in=machines):
        whose = spans.get(machine.pk, machine)
        found[machine.account_id, machine.pk] = ONE if meets(where, machine, whose) else NOTHING
    return found


def meets(where: Where, machine: Instance, whose: AttributionSpan | Instance) -> bool:
    asked = [
        (where.projects, whose.project_id),
        (where.owners, whose.owner_id),
        (where.accounts, machine.account_id),
        (where.instances, machine.pk),
    ]
    labels = {**whose.labels}
    return all(not wanted or value in wanted for wanted, value in asked) and all(
        labels.get(name) == value for name, value in where.labels.items()
    )


def shared(charged: Charged, shares: Mapping[Key, Decimal], where: Where) -> Charged:
    """Only what the filters let through, each with its share."""
    rates = [
        (account, replace(rate, share=share))
        for account, rate in charged.rates
        if (share := shares.get((account, rate.machine), NOTHING)) and (not where.meters or rate.meter in where.meters)
    ]
    return Charged(rates, charged.unpriced)
