"""Keeps, once a day has ended, what it cost and what was forecast then: what later forecasts learn from and are measured by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction

from fleet.costs.forecast.forecast import month_forecast
from fleet.costs.forecast.models import ForecastDay
from fleet.costs.forecast.past import HISTORY_DAYS, past_of
from fleet.costs.forecast.rates import Charged, charged_between, factors_into
from fleet.costs.forecast.reckoning.backtest import Held, backtest
from fleet.costs.forecast.reckoning.flows import clock
from fleet.costs.forecast.reckoning.inputs import RATE_HOURS, OpenRate
from fleet.costs.forecast.reckoning.usual import MOST_DAYS
from fleet.costs.forecast.scopes import TEAM, named, scopes_of, where_of
from fleet.costs.ledger.intervals import Unit
from fleet.costs.spend.models import CostProgress
from fleet.costs.spend.spend import By, spend
from fleet.inventory.models import Instance
from fleet.teams.models import Team

KEPT_DAYS = 400
# What is corrected later, as by a bill, changes a day that has passed.
AGAIN_DAYS = 3
# One run makes up for so many days that were missed.
MOST_AT_ONCE = 20
BY = (By.ACCOUNT, By.PROJECT, By.OWNER, By.MACHINE)
ZERO = Decimal(0)


@dataclass(slots=True)
class Facts:
    """One day of one scope."""

    amount: Decimal = ZERO
    rates: list[Decimal | None] = field(default_factory=lambda: [ZERO] * len(RATE_HOURS))
    by_age: dict[int, Decimal] = field(default_factory=dict)

    def add(self, amount: Decimal, age: int | None) -> None:
        self.amount += amount
        if age is not None and 0 <= age < MOST_DAYS:
            self.by_age[age] = self.by_age.get(age, ZERO) + amount


def keep_days(*, team: Team, now: datetime) -> list[date]:
    """Writes the days that have ended and are summed, the newest first, and the forecast as it stands after the newest.

    Idempotent: a day that is kept already is only brought up to date while it is young.
    """
    progress = CostProgress.objects.filter(team=team).first()
    if progress is None or progress.time_zone != team.time_zone:
        return []
    zone = ZoneInfo(team.time_zone)
    today = min(progress.summed_until, now).astimezone(zone).date()
    newest = today - timedelta(days=1)
    days = wanted_days(team, today)
    if not days:
        return []
    seen = first_days(team, zone)
    factors = factors_into(team, team.currency, today)
    kept = {day: facts_of(team, day, zone, seen, factors) for day in days}
    is_fresh = newest in days and not ForecastDay.objects.filter(team=team, day=newest, month__isnull=False).exists()
    for day, facts in kept.items():
        write_day(team, day, facts, now)
    if is_fresh and now.astimezone(zone).date() == today:
        write_forecasts(team, newest, kept[newest], now)
    ForecastDay.objects.filter(team=team, day__lt=today - timedelta(days=KEPT_DAYS)).delete()
    return days


def wanted_days(team: Team, today: date) -> list[date]:
    """Those that are missing since money is counted, and once a day the youngest again."""
    known = set(
        ForecastDay.objects.filter(
            team=team, scope=TEAM, currency=team.currency, day__gte=today - timedelta(days=HISTORY_DAYS)
        ).values_list("day", flat=True)
    )
    first = first_counted(team)
    if first is None:
        return []
    span = min((today - first).days, HISTORY_DAYS)
    missing = [day for back in range(1, span + 1) if (day := today - timedelta(days=back)) not in known]
    if not missing:
        return []
    young = [today - timedelta(days=back) for back in range(2, 2 + AGAIN_DAYS)]
    again = [day for day in young if day in known and missing[0] == today - timedelta(days=1)]
    return [*missing[:MOST_AT_ONCE], *again]


def first_counted(team: Team) -> date | None:
    found = Instance.objects.filter(team=team).order_by("first_seen_at").values_list("first_seen_at", flat=True).first()
    return found and found.astimezone(ZoneInfo(team.time_zone)).date()


def first_days(team: Team, zone: ZoneInfo) -> dict[int, date]:
    """The day on which each machine was first seen."""
    rows = Instance.objects.filter(team=team).values_list("pk", "first_seen_at")
    return {pk: seen.astimezone(zone).date() for pk, seen in rows}


def facts_of(
    team: Team, day: date, zone: ZoneInfo, seen: Mapping[int, date], factors: Mapping[str, Decimal]
) -> dict[str, Facts]:
    """By scope. A constant number of queries."""
    found: dict[str, Facts] = {TEAM: Facts()}
    portions: dict[tuple[int, int | None], dict[str, Decimal]] = {}
    counted = spend(team=team, start=day, end=day + timedelta(days=1), by=BY)
    for key, one in counted.rows.items():
        account, project, owner, machine = (value if value is None else int(str(value)) for value in key)
        assert account is not None
        first = seen.get(machine) if machine is not None else None
        portion = portions.setdefault((account, machine), {})
        for scope in scopes_of(account=account, project=project, owner=owner):
            found.setdefault(scope, Facts()).add(one.total, (day - first).days if first else None)
            portion[scope] = portion.get(scope, ZERO) + one.total
    add_rates(found, portions, rates_of_day(team, day, zone, factors))
    return found


def rates_of_day(
    team: Team, day: date, zone: ZoneInfo, factors: Mapping[str, Decimal]
) -> Iterator[tuple[int, int | None, int, Decimal]]:
    """(account, machine, place in RATE_HOURS, an hour) of everything charged at one of these hours."""
    moments = [datetime.combine(day, time(hour), zone) for hour in RATE_HOURS]
    end = datetime.combine(day + timedelta(days=1), time(), zone)
    charged: Charged = charged_between(team=team, start=moments[0], end=end, factors=factors)
    for account, rate in charged.rates:
        if rate.unit in {Unit.HOUR, Unit.MONTH, Unit.GB_MONTH}:
            for place, moment in enumerate(moments):
                if rate.start <= moment and (rate.end is None or moment < rate.end):
                    yield account, rate.machine, place, hourly(rate, moment)


def hourly(rate: OpenRate, moment: datetime) -> Decimal:
    if rate.unit is Unit.HOUR:
        return rate.per_unit
    return rate.per_unit * clock(Unit.MONTH, moment + timedelta(hours=1), moment)


def add_rates(
    found: dict[str, Facts],
    portions: Mapping[tuple[int, int | None], Mapping[str, Decimal]],
    rates: Iterable[tuple[int, int | None, int, Decimal]],
) -> None:
    """The rate of a machine goes to its scopes as its money of the day did."""
    for account, machine, place, rate in rates:
        portion = portions.get((account, machine), {})
        whole = portion.get(TEAM, ZERO)
        if whole <= 0:
            portion, whole = {TEAM: Decimal(1), named("account", account): Decimal(1)}, Decimal(1)
        for scope, part in portion.items():
            facts = found.setdefault(scope, Facts())
            before = facts.rates[place]
            facts.rates[place] = (before or ZERO) + rate * part / whole


def write_day(team: Team, day: date, facts: Mapping[str, Facts], now: datetime) -> None:
    """What was forecast stays as it was. A scope that has cost nothing since it was kept last is kept as nothing."""
    silent = set(
        ForecastDay.objects.filter(team=team, day__gte=day - timedelta(days=MOST_DAYS), day__lt=day)
        .exclude(scope__in=facts)
        .values_list("scope", flat=True)
        .distinct()
    )
    rows = [
        row_of(team, day, scope, one, now) for scope, one in [*facts.items(), *((scope, Facts()) for scope in silent)]
    ]
    ForecastDay.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["team", "scope", "day"],
        update_fields=["currency", "amount", "rates", "by_age", "made_at"],
        batch_size=1_000,
    )


def row_of(team: Team, day: date, scope: str, facts: Facts, now: datetime) -> ForecastDay:
    return ForecastDay(
        team=team,
        scope=scope,
        day=day,
        currency=team.currency,
        amount=facts.amount,
        rates=[None if rate is None else f"{rate:f}" for rate in facts.rates],
        by_age={str(age): f"{amount:f}" for age, amount in sorted(facts.by_age.items())},
        made_at=now,
    )


def write_forecasts(team: Team, day: date, scopes: Iterable[str], now: datetime) -> None:
    """What is forecast for the present month, for every scope that cost something that day."""
    held = tested(team, day)
    for scope in sorted(scopes):
        made = month_forecast(team=team, now=now, where=where_of(scope))
        fields: dict[str, Any] = {
            "month": made.month_start.astimezone(ZoneInfo(team.time_zone)).date(),
            "will_end": made.will_end,
            "low": made.low,
            "high": made.high,
        }
        if scope == TEAM:
            fields |= {"tested_held": held.held, "tested": held.of}
        with transaction.atomic():
            ForecastDay.objects.filter(team=team, scope=scope, day=day).update(**fields)


def tested(team: Team, day: date) -> Held:
    past = past_of(team=team, scope=TEAM, currency=team.currency, today=day + timedelta(days=1))
    return backtest(past.days)
