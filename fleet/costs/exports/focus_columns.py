"""The columns of FOCUS (focus.finops.org): which version has which, and ours behind them."""

from __future__ import annotations

from fleet.costs.exports.columns import Column, Kind

VERSIONS = ("1.0", "1.2", "1.3")
DEFAULT_VERSION = "1.2"

# By name, with the version that they came with. Columns for what nobody tells us (zones, capacity reservations, contracts) are left out:
# the specification asks for them only where a provider supports it.
_COLUMNS: tuple[tuple[str, Kind, str], ...] = (
    ("AllocatedMethodDetails", Kind.JSON, "1.3"),
    ("AllocatedMethodId", Kind.TEXT, "1.3"),
    ("AllocatedResourceId", Kind.TEXT, "1.3"),
    ("AllocatedResourceName", Kind.TEXT, "1.3"),
    ("AllocatedTags", Kind.JSON, "1.3"),
    ("BilledCost", Kind.MONEY, "1.0"),
    ("BillingAccountId", Kind.TEXT, "1.0"),
    ("BillingAccountName", Kind.TEXT, "1.0"),
    ("BillingAccountType", Kind.TEXT, "1.2"),
    ("BillingCurrency", Kind.TEXT, "1.0"),
    ("BillingPeriodEnd", Kind.TIME, "1.0"),
    ("BillingPeriodStart", Kind.TIME, "1.0"),
    ("ChargeCategory", Kind.TEXT, "1.0"),
    ("ChargeClass", Kind.TEXT, "1.0"),
    ("ChargeDescription", Kind.TEXT, "1.0"),
    ("ChargeFrequency", Kind.TEXT, "1.0"),
    ("ChargePeriodEnd", Kind.TIME, "1.0"),
    ("ChargePeriodStart", Kind.TIME, "1.0"),
    ("CommitmentDiscountCategory", Kind.TEXT, "1.0"),
    ("CommitmentDiscountId", Kind.TEXT, "1.0"),
    ("CommitmentDiscountName", Kind.TEXT, "1.0"),
    ("CommitmentDiscountQuantity", Kind.MONEY, "1.1"),
    ("CommitmentDiscountStatus", Kind.TEXT, "1.0"),
    ("CommitmentDiscountType", Kind.TEXT, "1.0"),
    ("CommitmentDiscountUnit", Kind.TEXT, "1.1"),
    ("ConsumedQuantity", Kind.QUANTITY, "1.0"),
    ("ConsumedUnit", Kind.TEXT, "1.0"),
    ("ContractedCost", Kind.MONEY, "1.0"),
    ("ContractedUnitPrice", Kind.UNIT_PRICE, "1.0"),
    ("EffectiveCost", Kind.MONEY, "1.0"),
    ("HostProviderName", Kind.TEXT, "1.3"),
    ("InvoiceId", Kind.TEXT, "1.2"),
    ("InvoiceIssuerName", Kind.TEXT, "1.0"),
    ("ListCost", Kind.MONEY, "1.0"),
    ("ListUnitPrice", Kind.UNIT_PRICE, "1.0"),
    ("PricingCategory", Kind.TEXT, "1.0"),
    ("PricingCurrency", Kind.TEXT, "1.2"),
    ("PricingCurrencyContractedUnitPrice", Kind.UNIT_PRICE, "1.2"),
    ("PricingCurrencyEffectiveCost", Kind.MONEY, "1.2"),
    ("PricingCurrencyListUnitPrice", Kind.UNIT_PRICE, "1.2"),
    ("PricingQuantity", Kind.QUANTITY, "1.0"),
    ("PricingUnit", Kind.TEXT, "1.0"),
    ("ProviderName", Kind.TEXT, "1.0"),
    ("PublisherName", Kind.TEXT, "1.0"),
    ("RegionId", Kind.TEXT, "1.0"),
    ("RegionName", Kind.TEXT, "1.0"),
    ("ResourceId", Kind.TEXT, "1.0"),
    ("ResourceName", Kind.TEXT, "1.0"),
    ("ResourceType", Kind.TEXT, "1.0"),
    ("ServiceCategory", Kind.TEXT, "1.0"),
    ("ServiceName", Kind.TEXT, "1.0"),
    ("ServiceProviderName", Kind.TEXT, "1.3"),
    ("ServiceSubcategory", Kind.TEXT, "1.1"),
    ("SkuId", Kind.TEXT, "1.0"),
    ("SkuMeter", Kind.TEXT, "1.1"),
    ("SkuPriceDetails", Kind.JSON, "1.1"),
    ("SkuPriceId", Kind.TEXT, "1.0"),
    ("SubAccountId", Kind.TEXT, "1.0"),
    ("SubAccountName", Kind.TEXT, "1.0"),
    ("SubAccountType", Kind.TEXT, "1.2"),
    ("Tags", Kind.JSON, "1.0"),
)
# What drafts of 1.0 called some of its columns. The published validator asks for both names, so a file of 1.0 has both.
DRAFT_NAMES = {
    "ChargeType": "ChargeCategory",
    "InvoiceIssuer": "InvoiceIssuerName",
    "Provider": "ProviderName",
    "Publisher": "PublisherName",
    "ResourceID": "ResourceId",
}
# Columns of nobody's specification begin with x_, and stand behind the others.
OWN = (
    Column("x_AdjustmentId", Kind.COUNT),
    Column("x_AdjustmentKind"),
    Column("x_ConvertedCost", Kind.MONEY),
    Column("x_ConvertedCurrency"),
    Column("x_ExchangeRate", Kind.UNIT_PRICE),
    Column("x_GpuCount", Kind.COUNT),
    Column("x_GpuModel"),
    Column("x_IdleCost", Kind.MONEY),
    Column("x_IsIdleShare", Kind.FLAG),
    Column("x_JobId"),
    Column("x_MachineId", Kind.COUNT),
    Column("x_Market"),
    Column("x_Meter"),
    Column("x_Owner"),
    Column("x_Project"),
    Column("x_StalledCost", Kind.MONEY),
    Column("x_Tenancy"),
    Column("x_UnpricedSeconds", Kind.SECONDS),
    Column("x_UsefulGpuSeconds", Kind.SECONDS),
)


def columns_of(version: str) -> tuple[Column, ...]:
    """Of one of VERSIONS, which compare as texts."""
    drafts = map(Column, DRAFT_NAMES) if version == "1.0" else ()
    return (*(Column(name, kind) for name, kind, since in _COLUMNS if since <= version), *drafts, *OWN)
