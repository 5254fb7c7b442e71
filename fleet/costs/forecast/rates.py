"""What is charged for as the ledger stands: its intervals that reach into a span, in one currency."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Case, Count, DateTimeField, F, Q, QuerySet, Sum, When
from django.db.models.functions import Greatest

from fleet.costs.book.models import LedgerInterval
from fleet.costs.forecast.reckoning.inputs import OpenRate
from fleet.costs.ledger.intervals import Meter, Unit
from fleet.costs.spend.converting import rates_into
from fleet.teams.models import Team

FREE = (Meter.NOTHING, Meter.ADJUSTMENT)
COLUMNS = (
    "meter__instance_id",
    "meter__account_id",
    "meter__kind",
    "period",
    "unit",
    "unit_price",
    "quantity",
    "currency",
)


@dataclass(slots=True)
class Charged:
    """`rates` with the account of each. `unpriced`: how many things are charged at a price nobody told, or in a currency without a rate."""

    rates: list[tuple[int, OpenRate]] = field(default_factory=list)
    unpriced: int = 0


def charged_between(*, team: Team, start: datetime, end: datetime, factors: Mapping[str, Decimal]) -> Charged:
    """Every interval that reaches into [start, end). One query."""
    return told(_reaching(team, start, end).values_list(*COLUMNS), factors)


def charged_together(
    *, team: Team, start: datetime, end: datetime, factors: Mapping[str, Decimal], singly: Collection[int]
) -> Charged:
    """As `charged_between`, added up by the database: of an account, what is charged for the same time is one rate of no machine.

    Only the machines of `singly` have rates of their own. A rate that began before `start` begins at it, unless its beginning matters: that
    of these machines' runs, and of what is charged once over its interval. One query.
    """
    own, begins, ends = Q(meter__instance__in=singly), F("period__startswith"), F("period__endswith")
    keeps = own | Q(unit=Unit.ONCE)
    rows = (
        _reaching(team, start, end)
        .annotate(
            machine=Case(When(own, then=F("meter__instance_id"))),
            begins=Case(When(keeps, then=begins), default=Greatest(begins, start), output_field=DateTimeField()),
            ends=ends,
        )
        .values_list("machine", "meter__account_id", "meter__kind", "unit", "currency", "begins", "ends")
        .annotate(per_unit=Sum(F("unit_price") * F("quantity")), count=Count("pk"), priced=Count("unit_price"))
    )
    return told_together(rows, factors)


def _reaching(team: Team, start: datetime, end: datetime) -> QuerySet[LedgerInterval]:
    upper = Q(period__endswith=None) | Q(period__endswith__gt=start)
    rows = LedgerInterval.objects.filter(upper, meter__team=team, period__startswith__lt=end)
    return rows.exclude(meter__kind__in=FREE).order_by()


def told(rows: Iterable[tuple[Any, ...]], factors: Mapping[str, Decimal]) -> Charged:
    found = Charged()
    for machine, account, kind, period, unit, price, quantity, currency in rows:
        factor = factors.get(currency)
        if price is None or factor is None or kind == Meter.UNKNOWN:
            found.unpriced += 1
            continue
        rate = OpenRate(machine, Meter(kind), Unit(unit), price * factor, period.lower, quantity, period.upper)
        found.rates.append((account, rate))
    return found


def told_together(rows: Iterable[tuple[Any, ...]], factors: Mapping[str, Decimal]) -> Charged:
    found = Charged()
    for machine, account, kind, unit, currency, begins, ends, per_unit, count, priced in rows:
        factor = factors.get(currency)
        if per_unit is None or factor is None or kind == Meter.UNKNOWN:
            found.unpriced += count
            continue
        found.unpriced += count - priced
        found.rates.append((account, OpenRate(machine, Meter(kind), Unit(unit), per_unit * factor, begins, end=ends)))
    return found


def factors_into(team: Team, currency: str, today: date) -> dict[str, Decimal]:
    """The newest rate of every currency; of itself it is 1. One query."""
    stretches = rates_into(team_id=team.pk, currency=currency, start=today, end=today + timedelta(days=1))
    return {currency: Decimal(1)} | {one.currency: one.factor for one in stretches}


def machines_in(rates: Iterable[tuple[int, OpenRate]]) -> Iterator[int]:
    return (rate.machine for _account, rate in rates if rate.machine is not None)
