"""What CVM sells in each zone and at what price, and how it is ordered. An offer is named by zone and type: "ap-guangzhou-6/GN7.2XLARGE32"."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fleet.providers.base import CreateSpec, Market, Money, Offer, OfferQuery, Ref
from fleet.providers.errors import Invalid, PartialCreate, ScopeMissing, Unavailable
from fleet.providers.orders import chosen_image, key_name, limit_on_spot
from fleet.providers.reading import mib
from fleet.providers.rows import Row, number, price, rows_of
from fleet.providers.tencent_client import LABEL, Cvm
from fleet.providers.tencent_facts import Prices, gpus_of, tenancy_of

CHARGES: Mapping[Market, str] = {Market.ON_DEMAND: "POSTPAID_BY_HOUR", Market.SPOT: "SPOTPAID"}
# The limit of this call: values of a filter.
FILTER_VALUES = 100
# A machine nobody can reach is of no use: an address whose traffic is paid by the GB.
INTERNET: Mapping[str, Any] = {
    "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
    "InternetMaxBandwidthOut": 100,
    "PublicIpAssigned": True,
}


def offers_of(cvm: Cvm, query: OfferQuery, currency: str) -> Iterator[Offer]:
    for market, charge in CHARGES.items():
        if query.market in {None, market}:
            rows = on_sale(cvm, {"instance-charge-type": [charge]})
            yield from (offer_of(row, cvm.region, market, currency) for row in rows if number(row.get("GpuCount")))


def offer_of(row: Row, region: str, market: Market, currency: str) -> Offer:
    kind, gpus = row["InstanceType"], number(row["GpuCount"])
    assert gpus is not None
    speed = number(row.get("InstanceBandwidth"))
    return Offer(
        external_id=f"{row['Zone']}/{kind}",
        instance_type=kind,
        region=region,
        market=market,
        tenancy=tenancy_of(kind, gpus, ""),
        price=hourly(row, currency),
        available=row.get("Status") == "SELL",
        **gpus_of(gpus, (row.get("Externals") or {}).get("GPUDesc") or row.get("TypeName")),
        vcpus=row.get("Cpu"),
        ram_mib=mib(row.get("Memory")),
        disk_kind="ssd",
        node_network_gbps=float(speed) if speed else None,
        extra={"zone": row["Zone"], "stock": row.get("StatusCategory") or ""},
    )


def hourly(row: Row, currency: str) -> Money | None:
    told = row.get("Price") or {}
    if told.get("ChargeUnit") != "HOUR":
        return None
    discounted = told.get("UnitPriceDiscount")
    return price(told.get("UnitPrice") if discounted is None else discounted, currency)


def on_sale(cvm: Cvm, filters: Mapping[str, list[str]]) -> list[Row]:
    named = [{"Name": name, "Values": values} for name, values in filters.items()]
    return rows_of(cvm.read("DescribeZoneInstanceConfigInfos", Filters=named), "InstanceTypeQuotaSet", LABEL)


def prices_of(cvm: Cvm, wanted: Iterable[tuple[str, Market]], currency: str) -> Prices:
    """What the types of machines cost an hour, by zone; nothing where the key may not ask."""
    pairs = set(wanted)
    found: dict[tuple[str, str, Market], Money] = {}
    for market, charge in CHARGES.items():
        kinds = sorted(kind for kind, asked in pairs if asked is market)
        for start in range(0, len(kinds), FILTER_VALUES):
            filters = {"instance-charge-type": [charge], "instance-type": kinds[start : start + FILTER_VALUES]}
            try:
                rows = on_sale(cvm, filters)
            except ScopeMissing:
                return {}
            priced = ((row, hourly(row, currency)) for row in rows)
            found |= {(row["Zone"], row["InstanceType"], market): cost for row, cost in priced if cost}
    return found


def launch(cvm: Cvm, spec: CreateSpec, token: str) -> Ref:
    zone, slash, kind = spec.offer_id.partition("/")
    if not slash:
        raise Invalid(f"{LABEL} rents “zone/type”, as in ap-guangzhou-6/GN7.2XLARGE32.")
    limit_on_spot(spec, LABEL)
    tags = [{"Key": key, "Value": value} for key, value in {**spec.labels, "rackrent-launch": token}.items()]
    order: dict[str, Any] = {
        "Placement": {"Zone": zone},
        "InstanceType": kind,
        "ImageId": chosen_image(spec.image_id, LABEL),
        "InstanceName": spec.name,
        "InstanceChargeType": CHARGES[spec.market],
        "InstanceCount": 1,
        "ClientToken": token,
        "InternetAccessible": dict(INTERNET),
        "TagSpecification": [{"ResourceType": "instance", "Tags": tags}],
        **wishes(cvm, spec),
    }
    ids = cvm.act("RunInstances", **order).get("InstanceIdSet") or []
    if len(ids) > 1:
        raise PartialCreate(f"{LABEL} made {len(ids)} machines of one order.", Ref(ids[0], cvm.region))
    if not ids:
        raise Unavailable(f"{LABEL} took the order and named no machine.")
    return Ref(ids[0], cvm.region)


def wishes(cvm: Cvm, spec: CreateSpec) -> dict[str, Any]:
    order: dict[str, Any] = {}
    if spec.disk_gb:
        order["SystemDisk"] = {"DiskSize": spec.disk_gb}
    if spec.user_data:
        order["UserData"] = base64.b64encode(spec.user_data.encode()).decode()
    if spec.ssh_public_key:
        order["LoginSettings"] = {"KeyIds": [key_pair(cvm, spec.ssh_public_key)]}
    if spec.market is Market.SPOT:
        limit = {"MaxPrice": f"{spec.max_price_per_hour:f}"} if spec.max_price_per_hour is not None else {}
        options = {"SpotInstanceType": "one-time", **limit}
        order["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": options}
    return order


def key_pair(cvm: Cvm, public_key: str) -> str:
    """The id of Tencent's copy of a key, made where it is new. A name has 25 characters at most."""
    name = key_name(public_key, separator="_")
    known = cvm.read("DescribeKeyPairs", Filters=[{"Name": "key-name", "Values": [name]}])
    for row in rows_of(known, "KeyPairSet", LABEL):
        return str(row["KeyId"])
    return str(cvm.act("ImportKeyPair", KeyName=name, ProjectId=0, PublicKey=public_key)["KeyId"])
