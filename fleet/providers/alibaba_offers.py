"""What ECS sells and at what price, and how it is ordered."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fleet.providers.alibaba_client import LABEL, Ecs
from fleet.providers.alibaba_facts import gpus_of, tenancy_of
from fleet.providers.base import CreateSpec, Market, Money, Offer, OfferQuery
from fleet.providers.errors import Invalid, NoCapacity, PartialCreate, ProviderError, ScopeMissing, Unavailable
from fleet.providers.orders import chosen_image, key_name, limit_on_spot
from fleet.providers.rows import Row, price, rows_of
from fleet.providers.values import Ref

STRATEGIES: Mapping[Market, str] = {Market.ON_DEMAND: "NoSpot", Market.SPOT: "SpotAsPriceGo"}
TYPES_PER_PAGE = 100
MIB_PER_GIB = 1024
# A machine nobody can reach is of no use: an address whose traffic is paid by the GB.
INTERNET: Mapping[str, Any] = {"InternetMaxBandwidthOut": 100, "InternetChargeType": "PayByTraffic"}


def offers_of(ecs: Ecs, query: OfferQuery) -> Iterator[Offer]:
    sizes = sizes_with_gpus(ecs)
    for market in STRATEGIES:
        if query.market not in {None, market}:
            continue
        for kind, zones in sorted(on_sale(ecs, market).items()):
            if kind in sizes and fits(sizes[kind], query):
                yield offer_of(ecs, sizes[kind], market, zones)


def fits(size: Row, query: OfferQuery) -> bool:
    """Each price is a call of its own: what was not asked for is not priced."""
    gpus = gpus_of(size.get("GPUAmount"), size.get("GPUSpec"))
    return query.gpu_model in {"", gpus["gpu_model"]} and query.gpu_count in {None, gpus["gpu_count"]}


def offer_of(ecs: Ecs, size: Row, market: Market, zones: list[str]) -> Offer:
    kind = size["InstanceTypeId"]
    memory_gib = size.get("GPUMemorySize")
    speed_kbps = size.get("InstanceBandwidthRx")
    return Offer(
        external_id=kind,
        instance_type=kind,
        region=ecs.region,
        market=market,
        tenancy=tenancy_of({"InstanceType": kind}),
        price=price_of(ecs, kind, market),
        available=True,
        **gpus_of(size.get("GPUAmount"), size.get("GPUSpec")),
        gpu_memory_mib=None if memory_gib is None else int(memory_gib * MIB_PER_GIB),
        vcpus=size.get("CpuCoreCount"),
        ram_mib=int(size["MemorySize"] * MIB_PER_GIB) if size.get("MemorySize") else None,
        disk_kind="ssd",
        node_network_gbps=None if speed_kbps is None else speed_kbps / 1_000_000,
        extra={"zones": zones},
    )


def sizes_with_gpus(ecs: Ecs) -> dict[str, Row]:
    pages = ecs.pages("describe_instance_types", MinimumGPUAmount=1, MaxResults=TYPES_PER_PAGE)
    found = [row for page in pages for row in rows_of(page.get("InstanceTypes"), "InstanceType", LABEL)]
    return {row["InstanceTypeId"]: row for row in found}


def on_sale(ecs: Ecs, market: Market) -> dict[str, list[str]]:
    """The zones that have a type in stock now, by its name."""
    answer = ecs.read(
        "describe_available_resource",
        RegionId=ecs.region,
        DestinationResource="InstanceType",
        InstanceChargeType="PostPaid",
        SpotStrategy=STRATEGIES[market],
    )
    zones: dict[str, list[str]] = {}
    for zone in rows_of(answer.get("AvailableZones"), "AvailableZone", LABEL):
        for kind in kinds_of(zone):
            if kind.get("Status") == "Available":
                zones.setdefault(kind["Value"], []).append(zone["ZoneId"])
    return zones


def kinds_of(zone: Row) -> Iterator[Row]:
    for resource in zone.get("AvailableResources", {}).get("AvailableResource", ()):
        yield from resource.get("SupportedResources", {}).get("SupportedResource", ())


def prices_of(ecs: Ecs, rows: Iterable[tuple[str, Market]]) -> dict[tuple[str, Market], Money]:
    """What the types of machines cost an hour; nothing where the key may not ask."""
    found = {}
    for kind, market in sorted(set(rows)):
        if market in STRATEGIES and (cost := price_of(ecs, kind, market)):
            found[kind, market] = cost
    return found


def price_of(ecs: Ecs, kind: str, market: Market) -> Money | None:
    """Of the machine without disks and traffic. None where it cannot be asked, or is not sold any more."""
    try:
        answer = ecs.read(
            "describe_price",
            RegionId=ecs.region,
            ResourceType="instance",
            InstanceType=kind,
            PriceUnit="Hour",
            SpotStrategy=STRATEGIES[market],
        )
    except (ScopeMissing, Invalid, NoCapacity):
        return None
    told: Row = answer.get("PriceInfo", {}).get("Price", {})
    parts = told.get("DetailInfos", {}).get("DetailInfo", ())
    machine = next((part for part in parts if part.get("Resource") == "instanceType"), None)
    return price(machine["TradePrice"], told["Currency"]) if machine else None


def launch(ecs: Ecs, spec: CreateSpec, token: str, network: tuple[str, str] | None) -> Ref:
    if network is None:
        raise Invalid(
            f"Alibaba Cloud needs a vSwitch and a security group to rent in {ecs.region}: add them to the account."
        )
    order: dict[str, Any] = {
        "RegionId": ecs.region,
        "ImageId": chosen_image(spec.image_id, LABEL),
        "InstanceType": spec.offer_id,
        "InstanceName": spec.name,
        "InstanceChargeType": "PostPaid",
        "Amount": 1,
        "ClientToken": token,
        "VSwitchId": network[0],
        "SecurityGroupId": network[1],
        "Tag": [{"Key": key, "Value": value} for key, value in {**spec.labels, "rackrent-launch": token}.items()],
        **INTERNET,
        **strategy(spec),
    }
    if spec.disk_gb:
        order["SystemDisk"] = {"Size": str(spec.disk_gb)}
    if spec.user_data:
        order["UserData"] = base64.b64encode(spec.user_data.encode()).decode()
    if spec.ssh_public_key:
        order["KeyPairName"] = key_pair(ecs, spec.ssh_public_key)
    ids = ecs.act("run_instances", **order).get("InstanceIdSets", {}).get("InstanceIdSet", [])
    if len(ids) != 1:
        raise (
            PartialCreate(f"{LABEL} answered with {len(ids)} machines.", Ref(ids[0], ecs.region))
            if ids
            else Unavailable(f"{LABEL} took the order and named no machine.")
        )
    return Ref(ids[0], ecs.region)


def strategy(spec: CreateSpec) -> dict[str, Any]:
    limit_on_spot(spec, LABEL)
    if spec.market is Market.SPOT and spec.max_price_per_hour is not None:
        return {"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": float(spec.max_price_per_hour)}
    return {"SpotStrategy": STRATEGIES[spec.market]}


def key_pair(ecs: Ecs, public_key: str) -> str:
    """The name of Alibaba's copy of a key, made where it is new."""
    name = key_name(public_key)
    try:
        ecs.act("import_key_pair", RegionId=ecs.region, KeyPairName=name, PublicKeyBody=public_key)
    except ProviderError as refused:
        if "KeyPair.AlreadyExist" not in refused.detail:
            raise
    return name
