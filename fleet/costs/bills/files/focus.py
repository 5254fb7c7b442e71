"""Lines in the columns of FOCUS 1.0, 1.2 and 1.3 (https://focus.finops.org). What was billed is BilledCost: what an invoice adds up to.

Version 1.3 renames who provides; what a line is about has the same names in all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from fleet.costs.bills.files.cells import (
    CellError,
    Cells,
    amount_of,
    currency_of,
    line_of_text,
    number_of,
    period_of,
)
from fleet.providers.base import BilledCharge, ChargeKind, Money
from fleet.providers.bills import LineIds

NEEDED = ("BilledCost", "BillingCurrency", "ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd")
NOTHING = {"", "null", "NULL"}
UTC_ZONE = ZoneInfo("UTC")
CATEGORIES: Mapping[str, ChargeKind | None] = {
    "Usage": None,
    "Purchase": ChargeKind.COMMITMENT,
    "Tax": ChargeKind.TAX,
    "Credit": ChargeKind.CREDIT,
    "Adjustment": ChargeKind.REFUND,
}
SERVICES: Mapping[str, ChargeKind] = {
    "Compute": ChargeKind.COMPUTE,
    "AI and Machine Learning": ChargeKind.COMPUTE,
    "Storage": ChargeKind.DISK,
    "Networking": ChargeKind.EGRESS,
}
# What makes a line the same line, whatever it costs by now.
ABOUT = (
    "BillingAccountId",
    "SubAccountId",
    "ResourceId",
    "ChargeCategory",
    "ChargeDescription",
    "ServiceName",
    "RegionId",
    "SkuId",
    "SkuPriceId",
    "SkuMeter",
    "PricingCategory",
    "CommitmentDiscountId",
    "ChargePeriodStart",
    "ChargePeriodEnd",
)


def is_focus(columns: Sequence[str]) -> bool:
    return set(NEEDED) <= set(columns)


def missing_column(columns: Sequence[str]) -> str | None:
    """Of a file that is FOCUS by most of its names; None where it is not."""
    lacking = [name for name in NEEDED if name not in columns]
    return lacking[0] if lacking and "BilledCost" in columns else None


def charge_of(row: Cells, ids: LineIds) -> BilledCharge:
    """Raises CellError."""
    cells = {name: "" if value in NOTHING else value for name, value in row.items()}
    category = cells.get("ChargeCategory", "")
    if category not in CATEGORIES:
        text = _("“%(word)s” is no category of a charge. It is one of %(known)s.")
        raise CellError("ChargeCategory", text % {"word": category[:40], "known": ", ".join(CATEGORIES)})
    start, end = period_of(cells, "ChargePeriodStart", "ChargePeriodEnd", UTC_ZONE)
    quantity = cells.get("ConsumedQuantity") or cells.get("PricingQuantity") or ""
    return BilledCharge(
        line_id=ids.of(*(cells.get(name, "") for name in ABOUT)),
        kind=CATEGORIES[category] or SERVICES.get(cells.get("ServiceCategory", ""), ChargeKind.OTHER),
        raw_kind=line_of_text(" ".join(filter(None, (category, cells.get("ServiceName")))), 200),
        start=start,
        end=end,
        amount=Money(
            amount_of(cells.get("BilledCost", ""), "BilledCost"),
            currency_of(cells.get("BillingCurrency", ""), "BillingCurrency"),
        ),
        external_id=line_of_text(cells.get("ResourceId", ""), 200),
        quantity=number_of(quantity, "ConsumedQuantity") if quantity else None,
        unit=line_of_text(cells.get("ConsumedUnit") or cells.get("PricingUnit") or "", 60),
        description=line_of_text(cells.get("ChargeDescription", ""), 300),
    )
