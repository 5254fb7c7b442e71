"""What jobs cost so far, an hour, and where they head: the ledger's prices over the time in which their machines were held for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from fleet.costs.spend.converting import rates_into
from fleet.costs.spend.days import day_of
from fleet.teams.models import Team
from jobs.book.models import Attempt, Job
from jobs.spending.ahead import time_left
from jobs.spending.reading import counted
from jobs.spending.reckoning import Amounts, Charged, charge

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class JobCost:
    """`per_hour`: what it costs now, None where it has ended or nobody knows. `heads_for`: what it will have cost at its end, None where nothing tells
    how long it goes on. `others`: amounts in currencies without a rate to `currency`, beside `amount`.

    `unpriced_seconds`: time of machines at a price that nobody told, which `amount` lacks. `is_listing`: a machine's price is what its provider lists now.
    """

    amount: Decimal
    currency: str
    per_hour: Decimal | None = None
    heads_for: Decimal | None = None
    others: Mapping[str, Decimal] = field(default_factory=dict)
    unpriced_seconds: float = 0.0
    is_listing: bool = False

    @property
    def is_floor(self) -> bool:
        return self.unpriced_seconds > 0 or bool(self.others)


@dataclass(slots=True)
class _Sum:
    amounts: Amounts = field(default_factory=dict)
    per_hour: Amounts | None = field(default_factory=dict)
    goes_on: bool = False
    unpriced_seconds: float = 0.0
    is_listing: bool = False

    def add(self, one: Charged, *, goes_on: bool, is_listing: bool) -> None:
        for currency, amount in one.amounts.items():
            self.amounts[currency] = self.amounts.get(currency, Decimal(0)) + amount
        self.unpriced_seconds += one.unpriced_seconds
        self.is_listing |= is_listing
        if not goes_on:
            return
        self.goes_on = True
        if one.per_hour is None or self.per_hour is None:
            self.per_hour = None
            return
        for currency, amount in one.per_hour.items():
            self.per_hour[currency] = self.per_hour.get(currency, Decimal(0)) + amount


def cost_of(attempt: Attempt, now: datetime, *, into: str = "") -> JobCost:
    """In the team's currency if none is named and a rate leads there, else in its own."""
    (found,) = with_machines(Attempt.objects.filter(pk=attempt.pk))
    made = _costs({attempt.pk: [found]}, found.job.team, now=now, into=into)[attempt.pk]
    return replace(made, heads_for=heads_for(made, found, now))


def cost_of_job(job: Job, now: datetime, *, into: str = "") -> JobCost:
    """Of all its attempts; the newest tells where it heads."""
    attempts = list(with_machines(job.attempts.all()))
    made = _costs({job.pk: attempts}, job.team, now=now, into=into)[job.pk]
    newest = max(attempts, key=lambda attempt: attempt.number, default=None)
    return replace(made, heads_for=heads_for(made, newest, now) if newest else None)


def costs_of_jobs(jobs: Sequence[Job], team: Team, now: datetime) -> dict[int, JobCost]:
    """By job's id, in a constant number of queries; without where they head."""
    attempts: dict[int, list[Attempt]] = {job.pk: [] for job in jobs}
    for attempt in with_machines(Attempt.objects.filter(job__in=list(attempts))):
        attempts[attempt.job_id].append(attempt)
    return _costs(attempts, team, now=now)


def with_machines(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    return attempts.select_related("job__team").prefetch_related("nodes__hold", "nodes__instance")


def heads_for(cost: JobCost, attempt: Attempt, now: datetime) -> Decimal | None:
    if cost.per_hour is None or (left := time_left(attempt, now)) is None:
        return None
    return cost.amount + cost.per_hour * (left // timedelta(seconds=1)) / 3600


def _costs(
    attempts: Mapping[int, Sequence[Attempt]], team: Team, *, now: datetime, into: str = ""
) -> dict[int, JobCost]:
    """By the keys of `attempts`."""
    keys = {attempt.pk: key for key, some in attempts.items() for attempt in some}
    sums = {key: _Sum() for key in attempts}
    for one in counted([attempt for some in attempts.values() for attempt in some], now=now):
        charged = charge(one.stay, one.intervals, now=now)
        sums[keys[one.attempt_id]].add(charged, goes_on=one.stay.own.end is None, is_listing=one.is_listing)
    factors = factors_into(team, into or team.currency, now)
    return {key: _told(found, factors, into or team.currency) for key, found in sums.items()}


def factors_into(team: Team, currency: str, now: datetime) -> dict[str, Decimal]:
    """What one of each other currency is today, at the newest rate that there is."""
    today = day_of(now, ZoneInfo(team.time_zone))
    rates = rates_into(team_id=team.pk, currency=currency, start=today, end=today + timedelta(days=1))
    return {currency: Decimal(1)} | {one.currency: one.factor for one in rates}


def _told(found: _Sum, factors: Mapping[str, Decimal], currency: str) -> JobCost:
    amounts = {one: amount for one, amount in found.amounts.items() if amount}
    if len(amounts) == 1 and not amounts.keys() & factors.keys():
        # Nothing to add it to: it is said in its own currency.
        (currency,) = amounts
        factors = {currency: Decimal(1)}
    per_hour = found.per_hour if found.goes_on else None
    if per_hour is not None and not per_hour.keys() <= factors.keys():
        per_hour = None
    return JobCost(
        amount=sum((amounts[one] * factors[one] for one in amounts.keys() & factors.keys()), Decimal(0)),
        currency=currency,
        per_hour=None
        if per_hour is None
        else sum((amount * factors[one] for one, amount in per_hour.items()), Decimal(0)),
        others={one: amount for one, amount in amounts.items() if one not in factors},
        unpriced_seconds=found.unpriced_seconds,
        is_listing=found.is_listing,
    )
