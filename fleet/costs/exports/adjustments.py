"""Adjustments as rows of FOCUS: each by itself, with its kind and its reason.

What counts is what the day's sums hold of them. Where those do not hold the same yet, as in the minutes before they are summed again,
the sums go out as they are: a file never says another total than the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from fleet.costs.exports.charges import Charge, Day, Whose
from fleet.costs.exports.columns import Cell, Row
from fleet.costs.exports.focus import NOTHING, Quantity, costs, party, period, resource, sku, whose
from fleet.costs.exports.services import service_of
from fleet.costs.ledger.intervals import Meter
from fleet.costs.month import Month
from fleet.costs.spend.models import Adjustment

# A refund is money that the provider gives back, as a credit is.
CATEGORIES = {
    "usage": "Usage",
    "credit": "Credit",
    "refund": "Credit",
    "tax": "Tax",
    "purchase": "Purchase",
    "correction": "Adjustment",
}
FREQUENCIES = {"Usage": "Usage-Based"}
# What has a price and a quantity, by the specification.
PRICED = {"Usage", "Purchase"}

Key = tuple[int, int | None, str]


@dataclass(frozen=True, slots=True)
class Typed:
    """A part of the day's sums, and the adjustment that it is of; None where it cannot be told."""

    charge: Charge
    amount: Decimal
    adjustment: Adjustment | None


def adjustment_rows(day: Day, month: Month) -> Iterator[Row]:
    for one in typed_of(day):
        yield row_of(one, month)


def typed_of(day: Day) -> Iterator[Typed]:
    summed: dict[Key, list[Charge]] = {}
    for charge in day.charges:
        if charge.meter == Meter.ADJUSTMENT:
            key = charge.whose.account.pk, charge.machine.pk if charge.machine else None, charge.currency
            summed.setdefault(key, []).append(charge)
    typed: dict[Key, list[Adjustment]] = {}
    for one in day.adjustments:
        typed.setdefault((one.account_id, one.instance_id, one.currency), []).append(one)
    for key, charges in summed.items():
        yield from matched(charges, typed.get(key, []))


def matched(charges: list[Charge], typed: list[Adjustment]) -> Iterator[Typed]:
    total = sum((one.amount for one in charges), NOTHING)
    if total != sum((one.amount for one in typed), NOTHING) or not typed:
        yield from (Typed(charge, charge.amount, None) for charge in charges)
    elif len(typed) == 1:
        yield from (Typed(charge, charge.amount, typed[0]) for charge in charges)
    else:
        charge = charges[0] if len(charges) == 1 else nobodys(charges)
        yield from (Typed(charge, one.amount, one) for one in typed)


def nobodys(charges: Iterable[Charge]) -> Charge:
    """Several adjustments of a day that several pay for: whose each is cannot be told from the sums."""
    first = next(iter(charges))
    return replace(first, whose=Whose(0, first.whose.account, region=first.whose.region))


def row_of(one: Typed, month: Month) -> Row:
    charge, adjustment = one.charge, one.adjustment
    kind = adjustment.kind if adjustment else "correction"
    category = CATEGORIES[kind]
    service = service_of(charge.meter)
    billed_in = month_of_bill(adjustment, month)
    return {
        **period(billed_in, charge.starts_at, charge.ends_at),
        **party(charge.whose.account),
        **resource(charge.machine),
        **sku(charge.whose, charge.machine, charge.meter, service, charge.currency),
        **costs(one.amount, charge.currency, effective=NOTHING if category == "Purchase" else None),
        **price_of(one.amount, category),
        **whose(charge.whose),
        "ChargeCategory": category,
        "ChargeClass": "Correction" if billed_in.first > month.first else None,
        "ChargeFrequency": FREQUENCIES.get(category, "One-Time"),
        "ChargeDescription": adjustment.reason if adjustment else "Adjustments of the day",
        "x_AdjustmentId": adjustment.pk if adjustment else None,
        "x_AdjustmentKind": kind,
        "x_Meter": charge.meter,
    }


def month_of_bill(adjustment: Adjustment | None, month: Month) -> Month:
    """What was typed when the month was over corrects it, and stands on a later bill."""
    if adjustment is None:
        return month
    typed_on = adjustment.created_at.astimezone(month.zone).date()
    return replace(month, first=typed_on.replace(day=1)) if typed_on >= month.next_first else month


def price_of(amount: Decimal, category: str) -> dict[str, Cell]:
    if category in PRICED:
        return {**Quantity.of(amount).cells(consumed=category == "Usage"), "PricingCategory": "Standard"}
    if category == "Tax":
        return {"SkuId": None, "SkuMeter": None, "SkuPriceId": None, "SkuPriceDetails": None}
    return {}
