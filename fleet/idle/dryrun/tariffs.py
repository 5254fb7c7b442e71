"""Reads what machines cost, now and then: three queries however many machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.intervals import Meter, Unit
from fleet.costs.spend.converting import rates_into
from fleet.idle.dryrun.prices import Priced, Rates, Tariff
from fleet.idle.dryrun.readings import Range
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.words import price_after
from fleet.providers.registry import adapters
from fleet.teams.models import Team

DAY = timedelta(days=1)


def rates_of(team: Team, span: Range) -> Rates:
    zone = ZoneInfo(team.time_zone)
    start, end = span.since.astimezone(zone).date(), span.until.astimezone(zone).date() + DAY
    found = rates_into(team_id=team.pk, currency=team.currency, start=start, end=end)
    factors = {(one.currency, day): one.factor for one in found for day in one.days()}
    return Rates(team.currency, zone, factors)


def tariffs_of(machines: Sequence[Instance], span: Range, *, kind: OperationKind) -> dict[int, Tariff]:
    """`machine.account` is read. Disks that are charged beside the machine go on, so that a stop saves compute alone."""
    prices, with_disks = prices_of(machines, span)
    return {
        machine.pk: Tariff(
            prices.get(machine.pk, ()),
            stopped_price(machine, kind, has_disk=machine.pk in with_disks),
            machine.currency,
        )
        for machine in machines
    }


def prices_of(machines: Sequence[Instance], span: Range) -> tuple[dict[int, list[Priced]], set[int]]:
    """Of compute, by machine; and the machines whose disks have a meter of their own."""
    rows = LedgerInterval.objects.filter(
        meter__instance__in=[machine.pk for machine in machines],
        meter__kind__in=(Meter.COMPUTE, Meter.DISK_RUNNING),
        period__overlap=(span.since, span.until),
    )
    prices: dict[int, list[Priced]] = defaultdict(list)
    with_disks = set()
    for pk, kind, period, unit, price, quantity, currency in rows.order_by("period").values_list(
        "meter__instance_id", "meter__kind", "period", "unit", "unit_price", "quantity", "currency"
    ):
        if kind == Meter.DISK_RUNNING:
            with_disks.add(pk)
        else:
            per_hour = None if price is None or unit != Unit.HOUR else price * quantity
            prices[pk].append(Priced(period.lower, period.upper, per_hour, currency))
    return prices, with_disks


def stopped_price(machine: Instance, kind: OperationKind, *, has_disk: bool) -> Decimal | None:
    """An hour, beside what goes on being charged by itself."""
    adapter = adapters().get(machine.account.kind)
    if adapter is None:
        return machine.storage_price_per_hour
    if has_disk and kind is OperationKind.STOP:
        return Decimal(0)
    return price_after(machine, kind, adapter.semantics)
