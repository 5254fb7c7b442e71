"""From charges to rows of FOCUS (focus.finops.org, versions 1.0 to 1.3). Pure.

A row holds the columns of every version; who writes a file takes those of one. BilledCost adds up to what `spend` says of the same days:
it is what was charged, each charge once. EffectiveCost is what was used: nothing of a purchase, and of what a purchase covers its part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from fleet.costs.exports.charges import Account, Charge, Day, Machine, Whose, split_evenly
from fleet.costs.exports.columns import Cell, Row
from fleet.costs.exports.services import Service, service_of
from fleet.costs.ledger.intervals import Meter
from fleet.costs.month import Month
from fleet.providers.base import Market
from fleet.states import IDLE_MONEY, GpuState

NOTHING = Decimal(0)
UNIT_PRICE_STEP = Decimal("1e-14")
QUANTITY_STEP = Decimal("1e-9")
HOURS, UNITS = "Hours", "Units"
PRICING = {Market.SPOT.value: "Dynamic"}
# How a charge is split is told in docs/exports.md under this name, as the specification asks.
SPLIT_METHOD = "rackrent-attribution-by-hour"


@dataclass(frozen=True, slots=True)
class Quantity:
    """`amount` as a quantity at a price that is not negative: their product is the amount to the last digit of the price."""

    quantity: Decimal
    unit: str
    unit_price: Decimal

    @classmethod
    def of(cls, amount: Decimal, *, seconds: float = 0.0) -> Quantity:
        """By the hour where time was charged for; else one of it."""
        hours = (Decimal(repr(seconds)) / 3600).quantize(QUANTITY_STEP)
        if hours > 0 and amount >= 0:
            return cls(hours, HOURS, (amount / hours).quantize(UNIT_PRICE_STEP))
        if not amount:
            return cls(NOTHING, HOURS, NOTHING)
        return cls(Decimal(1).copy_sign(amount), UNITS, abs(amount))

    def cells(self, *, consumed: bool) -> dict[str, Cell]:
        return {
            "PricingQuantity": self.quantity,
            "PricingUnit": self.unit,
            "ListUnitPrice": self.unit_price,
            "ContractedUnitPrice": self.unit_price,
            "PricingCurrencyListUnitPrice": self.unit_price,
            "PricingCurrencyContractedUnitPrice": self.unit_price,
            **({"ConsumedQuantity": self.quantity, "ConsumedUnit": self.unit} if consumed else {}),
        }


def rows_of(day: Day, month: Month) -> Iterator[Row]:
    """Of everything but adjustments (adjustments.py)."""
    for charge in day.charges:
        if charge.meter == Meter.COMMITMENT:
            yield purchase_row(charge, month)
            yield from covered_rows(charge, day.charges, month)
        elif charge.meter != Meter.ADJUSTMENT and (charge.meter != Meter.NOTHING or charge.amount):
            yield usage_row(charge, month)


def usage_row(charge: Charge, month: Month) -> Row:
    service = service_of(charge.meter)
    priced = max(charge.seconds - charge.unpriced_seconds, 0.0)
    quantity = Quantity.of(charge.amount, seconds=priced)
    return {
        **period(month, charge.starts_at, charge.ends_at),
        **party(charge.whose.account),
        **resource(charge.machine),
        **sku(charge.whose, charge.machine, charge.meter, service, charge.currency),
        **costs(charge.amount, charge.currency),
        **quantity.cells(consumed=True),
        **whose(charge.whose),
        **share(charge),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": description(service, charge.machine, charge.whose, quantity, charge.currency),
        "PricingCategory": PRICING.get(charge.whose.market, "Standard"),
        "x_Meter": charge.meter,
        "x_IdleCost": sum((charge.states[state] for state in IDLE_MONEY), NOTHING),
        "x_StalledCost": charge.states[GpuState.STALLED],
        "x_UsefulGpuSeconds": charge.gpu_seconds[GpuState.WORKING],
        "x_UnpricedSeconds": charge.unpriced_seconds,
    }


def purchase_row(charge: Charge, month: Month) -> Row:
    """A commitment, as far as it is paid for this day: it covers usage, and is none."""
    service = service_of(charge.meter)
    quantity = Quantity.of(charge.amount, seconds=charge.seconds)
    return {
        **period(month, charge.starts_at, charge.ends_at),
        **party(charge.whose.account),
        **sku(charge.whose, charge.machine, charge.meter, service, charge.currency),
        **costs(charge.amount, charge.currency, effective=NOTHING),
        **quantity.cells(consumed=False),
        **whose(charge.whose),
        **commitment(charge, charge.amount),
        **commitment_resource(charge),
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "Recurring",
        "ChargeDescription": f"Commitment of {charge.whose.account.name}",
        "PricingCategory": "Standard",
        "x_Meter": charge.meter,
    }


def covered_rows(bought: Charge, charges: Iterable[Charge], month: Month) -> Iterator[Row]:
    """What the commitment paid for that day: its machine or, without one, the account's reserved machines, by their time; else nobody used it.

    Nothing of it is billed again, and what is effective adds up to what was bought.
    """
    used = [one for one in charges if is_covered(one, bought)]
    if not used:
        yield covered_row(bought, None, bought.amount, month)
        return
    weights = [Decimal(repr(one.seconds)) * (one.machine.gpu_count or 1 if one.machine else 1) for one in used]
    for one, part in zip(used, split_evenly(weights, bought.amount), strict=True):
        yield covered_row(bought, one, part, month)


def is_covered(one: Charge, bought: Charge) -> bool:
    if one.meter != Meter.COMPUTE or one.machine is None or one.seconds <= 0:
        return False
    if bought.machine is not None:
        return one.machine == bought.machine
    return one.whose.account == bought.whose.account and one.whose.market == Market.RESERVED


def covered_row(bought: Charge, used: Charge | None, part: Decimal, month: Month) -> Row:
    of = used or bought
    service = service_of(Meter.COMPUTE)
    quantity = Quantity.of(part, seconds=of.seconds)
    status = "Used" if used else "Unused"
    return {
        **period(month, of.starts_at, of.ends_at),
        **party(bought.whose.account),
        **(resource(of.machine) if used else commitment_resource(bought)),
        **sku(of.whose, of.machine, Meter.COMPUTE, service, bought.currency),
        **costs(part, bought.currency, billed=NOTHING),
        **quantity.cells(consumed=used is not None),
        **whose(of.whose),
        **commitment(bought, part),
        "CommitmentDiscountStatus": status,
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": f"{status} part of the commitment of {bought.whose.account.name}",
        "PricingCategory": "Committed",
        "x_Meter": bought.meter,
    }


def period(month: Month, starts_at: datetime, ends_at: datetime) -> dict[str, Cell]:
    return {
        "BillingPeriodStart": month.begins_at.astimezone(UTC),
        "BillingPeriodEnd": month.ends_at.astimezone(UTC),
        "ChargePeriodStart": starts_at,
        "ChargePeriodEnd": ends_at,
    }


def party(account: Account) -> dict[str, Cell]:
    names = ("ProviderName", "PublisherName", "InvoiceIssuerName", "ServiceProviderName", "HostProviderName")
    return {
        **dict.fromkeys(names, account.provider),
        "BillingAccountId": account.billing_id,
        "BillingAccountName": account.name,
        "BillingAccountType": "Provider account",
    }


def costs(
    amount: Decimal, currency: str, *, billed: Decimal | None = None, effective: Decimal | None = None
) -> dict[str, Cell]:
    """List prices are not told apart from the prices that hold: both are what the machine costs."""
    used = amount if effective is None else effective
    return {
        "BilledCost": amount if billed is None else billed,
        "EffectiveCost": used,
        "ListCost": amount,
        "ContractedCost": amount,
        "BillingCurrency": currency,
        "PricingCurrency": currency,
        "PricingCurrencyEffectiveCost": used,
    }


def resource(machine: Machine | None) -> dict[str, Cell]:
    if machine is None:
        return {}
    known = machine.external_id or f"machine-{machine.pk}"
    return {
        "ResourceId": known,
        "ResourceName": machine.name if machine.name != known else None,
        "ResourceType": "GPU machine",
        "x_MachineId": machine.pk,
        "x_GpuCount": machine.gpu_count,
    }


def commitment_id(bought: Charge) -> str:
    machine = f"/{bought.machine.external_id}" if bought.machine else ""
    return f"{bought.whose.account.billing_id}/commitment{machine}"


def commitment_resource(bought: Charge) -> dict[str, Cell]:
    return {
        "ResourceId": commitment_id(bought),
        "ResourceName": f"Commitment of {bought.whose.account.name}",
        "ResourceType": "Commitment",
    }


def commitment(bought: Charge, amount: Decimal) -> dict[str, Cell]:
    return {
        "CommitmentDiscountId": commitment_id(bought),
        "CommitmentDiscountName": f"Commitment of {bought.whose.account.name}",
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountType": "Commitment",
        "CommitmentDiscountQuantity": amount,
        "CommitmentDiscountUnit": bought.currency,
    }


def sku(group: Whose, machine: Machine | None, meter: str, service: Service, currency: str) -> dict[str, Cell]:
    kind = (machine and (machine.instance_type or hardware(machine, group))) or "account"
    name = f"{group.account.kind}/{kind}/{meter}"
    price = "/".join(part or "-" for part in (name, group.market, group.region, currency))
    return {
        "ServiceName": service.name,
        "ServiceCategory": service.category,
        "ServiceSubcategory": service.subcategory,
        "SkuId": name,
        "SkuMeter": service.meter,
        "SkuPriceId": price,
        "SkuPriceDetails": price_details(machine, group) if service.category == "Compute" else None,
    }


def hardware(machine: Machine, group: Whose) -> str:
    model = group.gpu_model or machine.gpu_model
    return f"{machine.gpu_count}x {model}" if machine.gpu_count and model else model


def price_details(machine: Machine | None, group: Whose) -> dict[str, object] | None:
    if machine is None:
        return None
    found = {
        "CoreCount": machine.vcpus,
        "GpuCount": machine.gpu_count,
        "InstanceType": machine.instance_type,
        "MemorySize": machine.ram_mib and round(machine.ram_mib / 1024, 3),
        "x_GpuModel": group.gpu_model or machine.gpu_model,
    }
    return {name: value for name, value in found.items() if value} or None


def whose(group: Whose) -> dict[str, Cell]:
    return {
        "RegionId": group.region or None,
        "RegionName": group.region or None,
        "Tags": group.labels or None,
        "x_GpuModel": group.gpu_model or None,
        "x_IsIdleShare": group.idle_share,
        "x_JobId": group.job or None,
        "x_Market": group.market or None,
        "x_Owner": group.owner or None,
        "x_Project": group.project or None,
        "x_Tenancy": group.tenancy or None,
    }


def share(charge: Charge) -> dict[str, Cell]:
    """Of a machine whose day several paid for: which part this is, and for whom. What nobody used is for nobody."""
    if charge.ratio is None:
        return {}
    element = {"AllocatedRatio": float(charge.ratio), "UsageUnit": HOURS, "UsageQuantity": charge.seconds / 3600}
    details: dict[str, Cell] = {
        "AllocatedMethodId": SPLIT_METHOD,
        "AllocatedMethodDetails": {"Elements": [element]},
    }
    if charge.whose.idle_share:
        return details
    of = charge.whose
    name = of.job or of.project or of.owner
    return {
        **details,
        "AllocatedResourceId": f"group-{of.pk}",
        "AllocatedResourceName": name or None,
        "AllocatedTags": of.labels or None,
    }


def description(service: Service, machine: Machine | None, group: Whose, quantity: Quantity, currency: str) -> str:
    of = f" of {machine.name} ({hardware(machine, group) or 'machine'})" if machine else f" of {group.account.name}"
    price = f"{quantity.unit_price:.6g} {currency}" if quantity.quantity else "no price known"
    per = f", {quantity.quantity:.4g} {quantity.unit.lower()} at {price}" if quantity.quantity else f", {price}"
    return f"{service.meter}{of}{per}"
