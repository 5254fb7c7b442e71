"""DigitalOcean's invoices: a line for each resource and month; what the present month has so far is a preview of its invoice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.providers.bills import BilledCharge, ChargeKind, LineIds
from fleet.providers.rows import Row, moment, number
from fleet.providers.values import Money

# By a word in the product's name, which nobody lists: the first that is found.
PRODUCTS: Mapping[str, ChargeKind] = {
    "bandwidth": ChargeKind.EGRESS,
    "volume": ChargeKind.NETWORK_VOLUME,
    "snapshot": ChargeKind.DISK,
    "backup": ChargeKind.DISK,
    "floating ip": ChargeKind.ADDRESS,
    "reserved ip": ChargeKind.ADDRESS,
    "droplet": ChargeKind.COMPUTE,
    "tax": ChargeKind.TAX,
    "vat": ChargeKind.TAX,
    "refund": ChargeKind.REFUND,
    "credit": ChargeKind.CREDIT,
}
INSTANT = timedelta(microseconds=1)
# Whose resource is a Droplet.
OF_DROPLETS = {ChargeKind.COMPUTE, ChargeKind.EGRESS}


def invoices_between(answer_rows: list[Row], preview: Row | None, start: datetime, end: datetime) -> list[str]:
    """The ids of invoices whose month touches [start, end)."""
    rows = [*answer_rows, *([preview] if preview else [])]
    first, last = f"{start:%Y-%m}", f"{end - INSTANT:%Y-%m}"
    wanted = [row for row in rows if first <= str(row["invoice_period"]) <= last]
    return list(dict.fromkeys(str(row["invoice_uuid"]) for row in wanted))


def line_of(item: Row, ids: LineIds) -> BilledCharge:
    product = str(item["product"])
    start, end = moment(item["start_time"]), moment(item["end_time"])
    amount = number(item["amount"])
    if start is None or end is None or amount is None or end <= start:
        raise ValueError(product)
    kind = kind_of(product, amount)
    resource = str(item.get("resource_id") or item.get("resource_uuid") or "")
    return BilledCharge(
        # The invoice's own id is another one when the preview has become final.
        line_id=ids.of(product, resource, item["start_time"], item.get("description") or ""),
        kind=kind,
        raw_kind=product,
        start=start,
        end=end,
        amount=Money(amount, "USD"),
        external_id=resource if kind in OF_DROPLETS else "",
        resource="" if kind in OF_DROPLETS else resource,
        quantity=number(item.get("duration")),
        unit=str(item.get("duration_unit") or ""),
        description=str(item.get("description") or ""),
    )


def kind_of(product: str, amount: Decimal) -> ChargeKind:
    known = next((kind for word, kind in PRODUCTS.items() if word in product.lower()), ChargeKind.OTHER)
    return ChargeKind.CREDIT if known is ChargeKind.OTHER and amount < 0 else known


def touching(lines: Iterator[BilledCharge], start: datetime, end: datetime) -> Iterator[BilledCharge]:
    return (line for line in lines if line.start < end and line.end > start)
