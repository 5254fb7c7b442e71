"""What bills say of an account, as it is compared with the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django.db.models import QuerySet

from fleet.costs.bills.matching import Billed, Key, MeterClass
from fleet.costs.bills.models import BillLine
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import ChargeKind

CLASSES: Mapping[str, MeterClass] = {
    ChargeKind.COMPUTE: MeterClass.COMPUTE,
    ChargeKind.DISK: MeterClass.DISK,
    ChargeKind.NETWORK_VOLUME: MeterClass.NETWORK_VOLUME,
    ChargeKind.EGRESS: MeterClass.EGRESS,
    ChargeKind.ADDRESS: MeterClass.ADDRESS,
    ChargeKind.LICENCE: MeterClass.LICENCE,
    ChargeKind.COMMITMENT: MeterClass.COMMITMENT,
    ChargeKind.CREDIT: MeterClass.CREDIT,
    ChargeKind.REFUND: MeterClass.CREDIT,
    ChargeKind.TAX: MeterClass.TAX,
}
HOURS = frozenset({"h", "hr", "hrs", "hour", "hours"})
SECONDS = frozenset({"s", "sec", "second", "seconds"})


def current_lines(account: ProviderAccount) -> QuerySet[BillLine]:
    return BillLine.objects.filter(account=account, superseded_by=None)


def lines_near(account: ProviderAccount, start: datetime, end: datetime) -> list[BillLine]:
    return list(current_lines(account).filter(starts_at__lt=end, ends_at__gt=start).order_by("starts_at", "pk"))


def middle_of(line: BillLine) -> datetime:
    return line.starts_at + (line.ends_at - line.starts_at) / 2


def mostly_in(starts_at: datetime, ends_at: datetime, start: datetime, end: datetime) -> bool:
    """Whether its middle lies within [start, end): days and months of a provider's clock belong where most of them is."""
    return start <= starts_at + (ends_at - starts_at) / 2 < end


def billed_of(line: BillLine) -> Billed:
    return Billed(key_of(line), line.starts_at, line.ends_at, line.amount, hours_of(line))


def key_of(line: BillLine) -> Key:
    """A kind that nobody mapped, of a machine, is its one sum only where the bill names no kind at all."""
    meter = CLASSES.get(line.kind, MeterClass.OTHER)
    if meter is MeterClass.OTHER and line.external_id and not line.raw_kind:
        meter = MeterClass.ALL
    machine = line.instance_id or 0
    return Key(machine, "" if machine else line.resource or line.external_id, meter, line.currency)


def hours_of(line: BillLine) -> Decimal | None:
    unit = line.unit.strip().lower()
    if line.quantity is None or line.kind != ChargeKind.COMPUTE:
        return None
    return line.quantity if unit in HOURS else line.quantity / 3600 if unit in SECONDS else None
