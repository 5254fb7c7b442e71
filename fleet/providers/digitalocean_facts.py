"""From DigitalOcean's rows to our words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from fleet.providers.base import (
    Billing,
    ImageState,
    InstanceState,
    Market,
    Offer,
    ProviderImage,
    ProviderInstance,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.gpus import canonical
from fleet.providers.orders import client_token, labels_of
from fleet.providers.reading import MIB_PER_GIB, mib
from fleet.providers.rows import Row, moment, price

STATES: Mapping[str, InstanceState] = {
    "new": InstanceState.PROVISIONING,
    "active": InstanceState.RUNNING,
    "off": InstanceState.STOPPED,
    "archive": InstanceState.STOPPED,
}
# A Droplet that is off keeps its GPUs and its whole price until it is destroyed.
BILLINGS: Mapping[str, Billing] = {"new": Billing.FULL, "active": Billing.FULL, "off": Billing.FULL}
# gpu_info names the chip only. These are sold as HGX modules.
LARGEST_GPU_MIB = 300 * MIB_PER_GIB
MODULES = {"nvidia_h100", "nvidia_h200", "nvidia_b300"}


def instance_of(row: Row) -> ProviderInstance:
    raw, size = str(row["status"]), row.get("size") or {}
    return ProviderInstance(
        ref=Ref(str(row["id"]), str((row.get("region") or {}).get("slug", ""))),
        name=str(row["name"]),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        billing=BILLINGS.get(raw, Billing.UNKNOWN),
        market=Market.ON_DEMAND,
        instance_type=str(row.get("size_slug") or size.get("slug") or ""),
        **gpus_of(row.get("gpu_info") or size.get("gpu_info")),
        vcpus=row.get("vcpus"),
        ram_mib=row.get("memory"),
        disk_gb=disk_gb(row),
        rate=price(size.get("price_hourly"), "USD"),
        ssh=addresses_of(row),
        image_id=str((row.get("image") or {}).get("id") or ""),
        image_name=str((row.get("image") or {}).get("name") or ""),
        created_at=moment(row.get("created_at")),
        labels=labels_of(row.get("tags") or ()),
        extra={"locked": bool(row.get("locked")), **client_token(*(row.get("tags") or ()))},
    )


def gpus_of(gpu: Row | None) -> dict[str, Any]:
    """0 GPUs for a Droplet without: DigitalOcean leaves gpu_info out then."""
    if not gpu:
        return {"gpu_count": 0, "tenancy": Tenancy.UNKNOWN}
    raw, memory_mib = str(gpu.get("model") or ""), memory_of(gpu.get("vram"))
    count = gpu.get("count")
    # Documented as the memory of one GPU; a size of eight tells the sum.
    each_mib = memory_mib // count if memory_mib and count and memory_mib > LARGEST_GPU_MIB else memory_mib
    return {
        "gpu_raw": raw,
        "gpu_model": canonical(raw, memory_mib=each_mib, form="sxm" if raw in MODULES else ""),
        "gpu_count": count,
        "gpu_memory_mib": each_mib,
        "tenancy": Tenancy.DEDICATED_GPU,
    }


def memory_of(size: Row | None) -> int | None:
    if not size or str(size.get("unit", "")).lower() not in {"gib", "gb"}:
        return None
    return mib(size.get("amount"))


def disk_gb(row: Row) -> int | None:
    """Boot and scratch disks together; `disk` is the boot disk alone."""
    disks = row.get("disk_info") or (row.get("size") or {}).get("disk_info")
    sizes = [disk["size"]["amount"] for disk in disks or () if disk.get("size")]
    return sum(sizes) if sizes else row.get("disk")


def addresses_of(row: Row) -> tuple[Ssh, ...]:
    found = [net["ip_address"] for net in (row.get("networks") or {}).get("v4") or () if net.get("type") == "public"]
    return tuple(Ssh(str(address)) for address in found)


def image_of(row: Row) -> ProviderImage:
    size = row.get("size_gigabytes")
    return ProviderImage(
        external_id=str(row["id"]),
        name=str(row["name"]),
        created_at=moment(row.get("created_at")),
        region=", ".join(row.get("regions") or ()),
        state=ImageState.READY,
        size_gb=None if size is None else Decimal(str(size)),
    )


def offers_of(row: Row) -> Iterator[Offer]:
    """One offer for each region of a size that has GPUs. A size without regions is sold out everywhere."""
    if not row.get("gpu_info"):
        return
    regions = row.get("regions") or [""]
    for region in regions:
        yield offer_of(row, str(region))


def offer_of(row: Row, region: str) -> Offer:
    gpus = gpus_of(row["gpu_info"])
    return Offer(
        external_id=str(row["slug"]),
        instance_type=str(row["slug"]),
        region=region,
        market=Market.ON_DEMAND,
        price=price(row.get("price_hourly"), "USD"),
        available=bool(row.get("available")) and bool(region),
        gpu_interconnect="nvlink" if row["gpu_info"].get("model") in MODULES and gpus["gpu_count"] != 1 else "",
        vcpus=row.get("vcpus"),
        ram_mib=row.get("memory"),
        disk_gb=disk_gb(row),
        disk_kind="nvme",
        **gpus,
    )
