"""The types with GPUs that a region has now, with the prices that are typed (on demand) or read (spot)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from fleet.providers.aws_facts import Prices, currency_of, form_of, gpus_of, tenancy_of
from fleet.providers.aws_reads import every, optional, spot_prices
from fleet.providers.base import Market, Money, Offer, OfferQuery

# The families that carry GPUs; a family of another letter would be missed, one without GPUs is left out by its facts.
FAMILIES = ["p*", "g*"]
LINUX = "Linux/UNIX"


def offers_of(ec2: Any, region: str, prices: Prices, query: OfferQuery) -> Iterator[Offer]:
    zones = zones_of(ec2)
    sizes = [
        {**size, "zones": sorted(zones[size["InstanceType"]])}
        for size in sizes_with_gpus(ec2)
        if size["InstanceType"] in zones
    ]
    if query.market in {None, Market.ON_DEMAND}:
        for size in sizes:
            price = prices.machines.of(size["InstanceType"], region, Market.ON_DEMAND)
            yield offer_of(size, Market.ON_DEMAND, price, region, prices)
    if query.market in {None, Market.SPOT}:
        yield from spot_offers(ec2, region, sizes, prices)


def spot_offers(ec2: Any, region: str, sizes: list[dict[str, Any]], prices: Prices) -> Iterator[Offer]:
    on_spot = [size for size in sizes if "spot" in size.get("SupportedUsageClasses", ())]
    nothing: dict[str, Decimal] = {}
    cheapest = optional(lambda: cheapest_zones(ec2, {size["InstanceType"] for size in on_spot}), nothing)
    for size in on_spot:
        amount = cheapest.get(size["InstanceType"])
        price = None if amount is None else Money(amount, currency_of(region))
        yield offer_of(size, Market.SPOT, price, region, prices)


def sizes_with_gpus(ec2: Any) -> list[dict[str, Any]]:
    wanted = {"Name": "instance-type", "Values": FAMILIES}
    found = every(ec2, "describe_instance_types", "InstanceTypes", Filters=[wanted])
    return [size for size in found if size.get("GpuInfo", {}).get("Gpus")]


def zones_of(ec2: Any) -> dict[str, list[str]]:
    """The zones of the region that offer a type, by its name."""
    wanted = {"Name": "instance-type", "Values": FAMILIES}
    operation, key = "describe_instance_type_offerings", "InstanceTypeOfferings"
    zones: dict[str, list[str]] = {}
    for row in every(ec2, operation, key, LocationType="availability-zone", Filters=[wanted]):
        zones.setdefault(row["InstanceType"], []).append(row["Location"])
    return zones


def cheapest_zones(ec2: Any, types: set[str]) -> dict[str, Decimal]:
    """The lowest of the zones' prices in force, by type."""
    lowest: dict[str, Decimal] = {}
    for (kind, _zone, product), price in spot_prices(ec2, types).items():
        if product == LINUX:
            lowest[kind] = min(lowest.get(kind, price), price)
    return lowest


def offer_of(size: dict[str, Any], market: Market, price: Money | None, region: str, prices: Prices) -> Offer:
    kind = size["InstanceType"]
    gpus = gpus_of(kind, size)
    storage = None if prices.storage is None else Money(prices.storage, currency_of(region))
    return Offer(
        external_id=kind,
        instance_type=kind,
        region=region,
        market=market,
        tenancy=tenancy_of({"Placement": {}}, size),
        price=price,
        storage_price_per_gb_month=storage,
        **gpus,
        gpu_interconnect="nvlink" if form_of(kind) == "sxm" and gpus["gpu_count"] > 1 else "",
        vcpus=size["VCpuInfo"]["DefaultVCpus"],
        ram_mib=size["MemoryInfo"]["SizeInMiB"],
        disk_kind="ssd",
        node_network_gbps=network_gbps(size),
        extra={
            "zones": size["zones"],
            "local_disk_gb": size.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        },
    )


def network_gbps(size: dict[str, Any]) -> float | None:
    """What the type's cards sustain together; None where EC2 gives a peak alone."""
    cards = [card.get("BaselineBandwidthInGbps") for card in size.get("NetworkInfo", {}).get("NetworkCards", ())]
    return float(sum(cards)) if cards and None not in cards else None
