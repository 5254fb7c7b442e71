"""Vast.ai's charges: a result for each contract of a day, with an item for each thing that was charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal

from fleet.providers.bills import DAY, BilledCharge, ChargeKind, LineIds
from fleet.providers.rows import Row, number
from fleet.providers.values import Money

# "bwd" and "bwu": what came in and what went out, each with a price of its own at most hosts.
KINDS: Mapping[str, ChargeKind] = {
    "gpu": ChargeKind.COMPUTE,
    "disk": ChargeKind.DISK,
    "bwd": ChargeKind.EGRESS,
    "bwu": ChargeKind.EGRESS,
}
INSTANCE, VOLUME = "instance", "volume"
# Contracts are rounded to three places: what differs from the items by less is that.
ROUNDED = Decimal("0.001")


def lines_of(row: Row, day: datetime, ids: LineIds) -> Iterator[BilledCharge]:
    """Of one contract on one day. What its items do not hold of its amount is a line of its own."""
    contract = str(row["type"])
    items = [(str(item["type"]), figure(item["amount"]), str(item.get("description") or "")) for item in row["items"]]
    rest = figure(row["amount"]) - sum((amount for _, amount, _ in items), Decimal(0))
    if not items or abs(rest) > ROUNDED:
        items.append((contract, rest, str(row.get("description") or "")))
    for word, amount, description in items:
        if amount:
            yield BilledCharge(
                line_id=ids.of(row["source"], f"{day:%Y-%m-%d}", word),
                kind=kind_of(contract, word),
                raw_kind=word,
                start=day,
                end=day + DAY,
                amount=Money(amount, "USD"),
                external_id=id_of(row, INSTANCE) if contract == INSTANCE else "",
                resource="" if contract == INSTANCE else id_of(row, contract),
                description=description,
            )


def kind_of(contract: str, word: str) -> ChargeKind:
    if contract == VOLUME and word in {"disk", VOLUME}:
        return ChargeKind.NETWORK_VOLUME
    return KINDS.get(word, ChargeKind.OTHER)


def id_of(row: Row, contract: str) -> str:
    """Of a source such as "instance-123"."""
    return str(row["source"]).removeprefix(f"{contract}-")


def figure(value: object) -> Decimal:
    read = number(value)
    if read is None:
        raise TypeError(value)
    return read
