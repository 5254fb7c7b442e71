"""Reads what the rules look at: whole days of money, what is charged now, new machines and stopped disks. A constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from fleet.costs.anomalies.lookback import SPAN_DAYS
from fleet.costs.anomalies.rules.base import Day, Facts, NewMachine, StoppedDisk
from fleet.costs.anomalies.rules.stopped_storage import MONTH_HOURS
from fleet.costs.anomalies.rules.weekday import WEEKS
from fleet.costs.forecast.rates import charged_between, factors_into
from fleet.costs.forecast.reckoning.flows import clock
from fleet.costs.forecast.reckoning.inputs import OpenRate
from fleet.costs.ledger.intervals import Meter, Unit
from fleet.costs.spend.models import CostProgress
from fleet.costs.spend.spend import By, Sum, spend
from fleet.inventory.models import Instance
from fleet.teams.models import Team

NEW_FOR = timedelta(hours=24)
LOOK_BACK = timedelta(days=SPAN_DAYS + 7 * WEEKS)
HOURLY = (Unit.HOUR, Unit.MONTH, Unit.GB_MONTH)


def load_facts(*, team: Team, now: datetime, look_back: bool = False) -> Facts | None:
    """None while nothing is summed. `look_back`: with the new machines of all days that a look back goes over."""
    progress = CostProgress.objects.filter(team=team).first()
    if progress is None:
        return None
    zone = ZoneInfo(team.time_zone)
    today = min(progress.summed_until, now).astimezone(zone).date()
    factors = factors_into(team, team.currency, today)
    charged = charged_between(team=team, start=now, end=now + timedelta(seconds=1), factors=factors)
    rates = [rate for _account, rate in charged.rates if rate.unit in HOURLY]
    since = datetime.combine(today - timedelta(days=SPAN_DAYS), time(), zone) if look_back else now - NEW_FOR
    return Facts(
        today=today,
        burn_day=today,
        days=days_of(team, today),
        burn_per_hour=sum((hourly(rate, now) for rate in rates), Decimal(0)) if rates or not charged.unpriced else None,
        new_machines=new_machines(team, since, zone, factors),
        stopped=stopped_disks(rates),
    )


def days_of(team: Team, today: date) -> tuple[Day, ...]:
    """From the first day on which anything was charged; a day on which nothing was is known to be nothing."""
    counted = spend(team=team, start=today - LOOK_BACK, end=today, by=(By.DAY, By.METER))
    by_day: dict[date, dict[str, Sum]] = defaultdict(dict)
    for (day, meter), one in counted.rows.items():
        assert isinstance(day, date)
        by_day[day][str(meter)] = one
    if not by_day:
        return ()
    first = min(by_day)
    return tuple(day_of(first + timedelta(days=number), by_day) for number in range((today - first).days))


def day_of(day: date, by_day: Mapping[date, Mapping[str, Sum]]) -> Day:
    meters = by_day.get(day, {})
    stopped = meters.get(Meter.DISK_STOPPED)
    return Day(
        day,
        sum((one.total for one in meters.values()), Decimal(0)),
        sum((one.idle for one in meters.values()), Decimal(0)),
        stopped.total if stopped else Decimal(0),
    )


def hourly(rate: OpenRate, now: datetime) -> Decimal:
    if rate.unit is Unit.HOUR:
        return rate.per_unit
    return rate.per_unit * clock(Unit.MONTH, now + timedelta(hours=1), now)


def new_machines(team: Team, since: datetime, zone: ZoneInfo, factors: Mapping[str, Decimal]) -> tuple[NewMachine, ...]:
    """Those of a provider account that was connected just now were there before: they are new to us alone, and told all the same."""
    rows = Instance.objects.filter(team=team, first_seen_at__gt=since)
    return tuple(
        NewMachine(row.pk, row.name, row.first_seen_at.astimezone(zone).date(), price_of(row, factors)) for row in rows
    )


def price_of(row: Instance, factors: Mapping[str, Decimal]) -> Decimal | None:
    factor = factors.get(row.currency)
    return None if row.price_per_hour is None or factor is None else row.price_per_hour * factor


def stopped_disks(rates: Iterable[OpenRate]) -> tuple[StoppedDisk, ...]:
    found: dict[int, Decimal] = defaultdict(Decimal)
    for rate in rates:
        if rate.meter is Meter.DISK_STOPPED and rate.machine is not None:
            monthly = rate.per_unit * MONTH_HOURS if rate.unit is Unit.HOUR else rate.per_unit
            found[rate.machine] += monthly
    names = dict(Instance.objects.filter(pk__in=found).values_list("pk", "name"))
    return tuple(StoppedDisk(pk, names.get(pk, ""), amount) for pk, amount in found.items())
