"""From Hyperstack's rows to our words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from fleet.providers.base import (
    Billing,
    ImageState,
    InstanceState,
    Market,
    Money,
    Offer,
    ProviderImage,
    ProviderInstance,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.gpus import canonical
from fleet.providers.orders import client_token, labels_of
from fleet.providers.reading import mib, utc, whole
from fleet.providers.rows import Row, number

STATES: Mapping[str, InstanceState] = {
    "CREATING": InstanceState.PROVISIONING,
    "BUILD": InstanceState.PROVISIONING,
    "ACTIVE": InstanceState.RUNNING,
    "SHUTOFF": InstanceState.STOPPED,
    "HIBERNATING": InstanceState.STOPPING,
    "HIBERNATED": InstanceState.STOPPED,
    "RESTORING": InstanceState.STARTING,
    "DELETING": InstanceState.TERMINATING,
    "DELETED": InstanceState.TERMINATED,
    "ERROR": InstanceState.ERROR,
}
# docs/billing/states-and-billing: shut off costs the full price, hibernated the root disk and the address, what is under way nothing.
BILLINGS: Mapping[str, Billing] = {
    "CREATING": Billing.NONE,
    "BUILD": Billing.NONE,
    "ACTIVE": Billing.FULL,
    "SHUTOFF": Billing.FULL,
    "HIBERNATING": Billing.NONE,
    "HIBERNATED": Billing.STORAGE,
    "RESTORING": Billing.NONE,
    "DELETING": Billing.NONE,
    "DELETED": Billing.NONE,
    "ERROR": Billing.NONE,
}
SNAPSHOT_STATES: Mapping[str, ImageState] = {
    "CREATING": ImageState.PENDING,
    "SUCCESS": ImageState.READY,
    "ACTIVE": ImageState.READY,
    "ERROR": ImageState.FAILED,
}
# Begins the id of a snapshot among images, which have names instead.
SNAPSHOT = "snapshot:"
SPOT = "-spot"
# "H100-80G-PCIe-NVLink", "A100-80G-SXM4", "RTX-A6000"
MEMORY = re.compile(r"-(\d+)G(?=-|$)")
Prices = Mapping[str, Decimal]


def instance_of(row: Row, prices: Prices) -> ProviderInstance:
    raw, flavor, labels = str(row["status"]), row.get("flavor") or {}, row.get("labels") or ()
    place, image = row.get("environment") or {}, row.get("image") or {}
    return ProviderInstance(
        ref=Ref(str(row["id"]), str(place.get("region") or "")),
        name=str(row.get("name") or ""),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=str(row.get("vm_state") or ""),
        billing=BILLINGS.get(raw, Billing.UNKNOWN),
        market=market_of(row, flavor),
        instance_type=str(flavor.get("name") or ""),
        **size_of(flavor),
        rate=rate_of(flavor, prices),
        ssh=addresses_of(row, str(image.get("name") or "")),
        image_id=str(image.get("name") or ""),
        image_name=str(image.get("name") or ""),
        created_at=utc(row.get("created_at")),
        labels=labels_of(labels),
        extra={
            "environment": str(place.get("name") or ""),
            "locked": bool(row.get("locked")),
            **client_token(row.get("name"), *labels),
        },
    )


def market_of(row: Row, flavor: Row) -> Market:
    if row.get("contract_id"):
        return Market.RESERVED
    return Market.SPOT if str(flavor.get("gpu") or "").endswith(SPOT) else Market.ON_DEMAND


def size_of(flavor: Row) -> dict[str, Any]:
    disks = [flavor[name] for name in ("disk", "ephemeral") if flavor.get(name)]
    return {
        **gpus_of(flavor),
        "vcpus": flavor.get("cpu"),
        "ram_mib": mib(flavor.get("ram")),
        "disk_gb": whole(sum(disks)) if disks else None,
    }


def gpus_of(flavor: Row) -> dict[str, Any]:
    raw, count = str(flavor.get("gpu") or ""), flavor.get("gpu_count")
    if not raw or not count:
        return {"gpu_count": count, "tenancy": Tenancy.UNKNOWN}
    memory = MEMORY.search(raw)
    plain = MEMORY.sub(r"-\1GB", raw.removesuffix(SPOT).removesuffix("-NVLink"))
    memory_mib = mib(memory[1]) if memory else None
    return {
        "gpu_raw": raw,
        "gpu_model": canonical(plain, memory_mib=memory_mib),
        "gpu_count": count,
        "gpu_memory_mib": memory_mib,
        "tenancy": Tenancy.DEDICATED_GPU,
    }


def prices_of(rows: Iterable[Row]) -> dict[str, Decimal]:
    """What one of each costs an hour: GPUs by the name that flavors have for them, spot ones apart."""
    found = {str(row["name"]): number(row.get("value")) for row in rows}
    return {name: value for name, value in found.items() if value is not None and value > 0}


def rate_of(flavor: Row, prices: Prices) -> Money | None:
    """GPUs carry the price of a flavor; vCPUs and memory come with them."""
    each, count = prices.get(str(flavor.get("gpu") or "")), flavor.get("gpu_count")
    return Money(each * count, "USD") if each is not None and count else None


def addresses_of(row: Row, image: str) -> tuple[Ssh, ...]:
    """The login name lies in the image."""
    user = "ubuntu" if image.lower().startswith("ubuntu") else ""
    return (Ssh(str(row["floating_ip"]), user=user),) if row.get("floating_ip") else ()


def own_images(groups: Iterable[Row]) -> Iterator[ProviderImage]:
    """Those of the account, from groups by region and system."""
    for group in groups:
        for row in group.get("images") or ():
            if row.get("is_public") is False:
                size = row.get("size")
                region = str(row.get("region_name") or group.get("region_name") or "")
                yield ProviderImage(
                    str(row["name"]), str(row["name"]), region=region, size_gb=Decimal(size) / 10**9 if size else None
                )


def snapshot_of(row: Row) -> ProviderImage:
    return ProviderImage(
        external_id=f"{SNAPSHOT}{row['id']}",
        name=str(row["name"]),
        created_at=utc(row.get("created_at")),
        region=str(row.get("region") or ""),
        state=SNAPSHOT_STATES.get(str(row.get("status")).upper(), ImageState.UNKNOWN),
        size_gb=number(row.get("size")),
    )


def offers_of(groups: Iterable[Row], prices: Prices) -> Iterator[Offer]:
    for group in groups:
        for flavor in group.get("flavors") or ():
            if flavor.get("gpu") and flavor.get("gpu_count"):
                yield offer_of(flavor, str(flavor.get("region_name") or group.get("region_name") or ""), prices)


def offer_of(flavor: Row, region: str, prices: Prices) -> Offer:
    name, gpu = str(flavor["name"]), str(flavor["gpu"])
    modules = "NVLink" in gpu or "SXM" in gpu
    return Offer(
        external_id=name,
        instance_type=name,
        region=region,
        market=Market.SPOT if gpu.endswith(SPOT) else Market.ON_DEMAND,
        price=rate_of(flavor, prices),
        available=flavor.get("stock_available"),
        gpu_interconnect="" if flavor["gpu_count"] == 1 else "nvlink" if modules else "pcie",
        disk_kind="nvme",
        **size_of(flavor),
    )
