"""The rules of the FOCUS specification 1.2, written down from its column tables and attributes: what is wrong with a file, rule by rule.

It reads a file as a stranger would: text, and nothing of the program that wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from babel.core import get_global

Row = Mapping[str, str]

MANDATORY = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
NEVER_NULL = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingCurrency",
    "PricingCurrencyEffectiveCost",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
)
NUMBERS = (
    "BilledCost",
    "CommitmentDiscountQuantity",
    "ConsumedQuantity",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "ListCost",
    "ListUnitPrice",
    "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice",
    "PricingQuantity",
)
PRICES = tuple(name for name in NUMBERS if name.endswith("UnitPrice"))
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
CURRENCIES = ("BillingCurrency", "PricingCurrency")
OBJECTS = ("SkuPriceDetails", "Tags")
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
    "CommitmentDiscountCategory": {"Spend", "Usage"},
    "CommitmentDiscountStatus": {"Used", "Unused"},
    "ServiceCategory": {"Compute", "Storage", "Networking", "Other"},
    "PricingUnit": {"Hours", "Units"},
    "ConsumedUnit": {"Hours", "Units"},
}
# One parent each, out of the specification's table; only those that a file of ours may hold.
SUBCATEGORIES = {
    "Virtual Machines": "Compute",
    "Block Storage": "Storage",
    "File Storage": "Storage",
    "Network Connectivity": "Networking",
    "Network Infrastructure": "Networking",
    "Other (Other)": "Other",
}
# By "Tax": must be null. By "Usage" and "Purchase" that are no correction: must not be.
PRICED = ("ListUnitPrice", "ContractedUnitPrice", "PricingQuantity", "PricingCategory", "SkuId", "SkuPriceId")
# The second is null where the first is, and (True) is not where the first is not.
FOLLOWS = (
    ("PricingQuantity", "PricingUnit", True),
    ("ConsumedQuantity", "ConsumedUnit", True),
    ("ResourceId", "ResourceType", True),
    ("ResourceId", "ResourceName", False),
    ("RegionId", "RegionName", True),
    ("SkuId", "SkuMeter", True),
    ("SkuPriceId", "SkuPriceDetails", False),
    ("CommitmentDiscountId", "CommitmentDiscountCategory", True),
    ("CommitmentDiscountId", "CommitmentDiscountStatus", False),
    ("SubAccountId", "SubAccountName", True),
)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(E-?[0-9]+)?")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
COLUMN = re.compile(r"([A-Z][a-z0-9]*)+")
# What a product of two rounded numbers may be off by.
CLOSE = Decimal("1e-9")

Rule = Callable[[Row], Iterator[str]]


def problems(rows: Sequence[Row]) -> list[str]:
    found = [*columns_wrong(list(rows[0])), *names_with_two_categories(rows), *prices_of_two_skus(rows)]
    for number, row in enumerate(rows, start=1):
        found += [f"row {number}: {text}" for rule in ROW_RULES for text in rule(row)]
    return found


def columns_wrong(names: list[str]) -> Iterator[str]:
    yield from (f"{name} is missing" for name in MANDATORY if name not in names)
    own = [name for name in names if name.startswith("x_")]
    if names[len(names) - len(own) :] != own:
        yield "columns of our own stand between those of the specification"
    yield from (f"{name} is no Pascal case" for name in names if not COLUMN.fullmatch(name.removeprefix("x_")))


def nulls(row: Row) -> Iterator[str]:
    yield from (f"{name} is null" for name in NEVER_NULL if name in row and not row[name])
    yield from (f"{name} is only spaces" for name, text in row.items() if text and not text.strip())
    yield from (f"{name} is {text}" for name, text in row.items() if text.lower() in {"null", "none", "n/a", "nan"})


def numbers(row: Row) -> Iterator[str]:
    wrong = [name for name in NUMBERS if row.get(name) and not NUMBER.fullmatch(row[name])]
    yield from (f"{name} is {row[name]}" for name in wrong)
    yield from (f"{name} is below 0" for name in PRICES if row.get(name, "").startswith("-"))


def times(row: Row) -> Iterator[str]:
    if wrong := [f"{name} is {row[name]}" for name in TIMES if not TIME.fullmatch(row[name])]:
        yield from wrong
        return
    for what in ("Billing", "Charge"):
        if moment(row[f"{what}PeriodStart"]) >= moment(row[f"{what}PeriodEnd"]):
            yield f"the {what} period ends before it starts"
    inside = row["BillingPeriodStart"] <= row["ChargePeriodStart"] and row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
    if inside != (row["ChargeClass"] != "Correction"):
        yield "a charge lies outside of the billing period if, and only if, it corrects an earlier one"


def words(row: Row) -> Iterator[str]:
    for name, known in ALLOWED.items():
        if row.get(name) and row[name] not in known:
            yield f"{name} is {row[name]}"
    if "ServiceSubcategory" in row and SUBCATEGORIES[row["ServiceSubcategory"]] != row["ServiceCategory"]:
        yield "the subcategory is of another category"
    known_currencies = get_global("all_currencies")
    yield from (f"{name} is {row[name]}" for name in CURRENCIES if name in row and row[name] not in known_currencies)


def objects(row: Row) -> Iterator[str]:
    for name in OBJECTS:
        if row.get(name):
            value = json.loads(row[name])
            if not isinstance(value, dict) or any(isinstance(one, dict | list) for one in value.values()):
                yield f"{name} is no flat object"


def following(row: Row) -> Iterator[str]:
    for first, second, both in FOLLOWS:
        if second in row and row[second] and not row[first]:
            yield f"{second} without {first}"
        if both and second in row and row[first] and not row[second]:
            yield f"{first} without {second}"


def priced(row: Row) -> Iterator[str]:
    category, corrects = row["ChargeCategory"], row["ChargeClass"] == "Correction"
    for name in PRICED:
        if category == "Tax" and row.get(name):
            yield f"{name} of a tax"
        if category in {"Usage", "Purchase"} and not corrects and name in row and not row[name]:
            yield f"{name} is null"
    for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
        if row[price] and row["PricingQuantity"] and not corrects:
            product = Decimal(row[price]) * Decimal(row["PricingQuantity"])
            if abs(product - Decimal(row[cost])) > CLOSE:
                yield f"{price} x PricingQuantity is {product}, {cost} {row[cost]}"
        if not row[price] and category == "Credit" and row[cost] != row["BilledCost"]:
            yield f"{cost} of a credit is not what was billed"


def consumed(row: Row) -> Iterator[str]:
    unused = row.get("CommitmentDiscountStatus") == "Unused"
    if row["ConsumedQuantity"] and (row["ChargeCategory"] != "Usage" or unused):
        yield "ConsumedQuantity of what is no use"
    if row["ChargeCategory"] == "Usage" and not unused and not row["ChargeClass"] and not row["ConsumedQuantity"]:
        yield "use without ConsumedQuantity"


def purchases(row: Row) -> Iterator[str]:
    category, covered = row["ChargeCategory"], row["CommitmentDiscountId"]
    if category == "Purchase" and Decimal(row["EffectiveCost"]) != 0:
        yield "a purchase has an effective cost"
    if category == "Purchase" and row["ChargeFrequency"] == "Usage-Based":
        yield "a purchase by usage"
    if category not in {"Usage", "Purchase"} and row["EffectiveCost"] != row["BilledCost"]:
        yield "EffectiveCost is not BilledCost"
    if covered and category == "Usage" and (not row["CommitmentDiscountStatus"] or Decimal(row["BilledCost"]) != 0):
        yield "what a commitment covers is billed again, or has no status"
    if (row["PricingCategory"] == "Committed") != bool(covered and category == "Usage"):
        yield "PricingCategory does not say whether a commitment covers it"
    needs = bool(covered) and category in {"Usage", "Purchase"}
    if "CommitmentDiscountQuantity" in row and bool(row["CommitmentDiscountQuantity"]) != needs:
        yield "CommitmentDiscountQuantity"
    if row["ResourceId"] and row["ResourceId"] == row["ResourceName"]:
        yield "ResourceName repeats ResourceId"


ROW_RULES: tuple[Rule, ...] = (nulls, numbers, times, words, objects, following, priced, consumed, purchases)


def names_with_two_categories(rows: Sequence[Row]) -> Iterator[str]:
    yield from two_of(rows, "ServiceName", "ServiceCategory")


def prices_of_two_skus(rows: Sequence[Row]) -> Iterator[str]:
    yield from two_of(rows, "SkuPriceId", "SkuId")


def two_of(rows: Sequence[Row], name: str, of: str) -> Iterator[str]:
    seen: dict[str, str] = {}
    for row in rows:
        if row[name] and seen.setdefault(row[name], row[of]) != row[of]:
            yield f"{name} {row[name]} has more than one {of}"


def commitments_off(rows: Sequence[Row]) -> dict[str, Decimal]:
    """By commitment: what its use is worth, less what was paid for it."""
    found: dict[str, Decimal] = {}
    for row in rows:
        if name := row["CommitmentDiscountId"]:
            effective, billed = Decimal(row["EffectiveCost"]), Decimal(row["BilledCost"])
            found[name] = found.get(name, Decimal(0)) + (effective if row["ChargeCategory"] == "Usage" else -billed)
    return found


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
