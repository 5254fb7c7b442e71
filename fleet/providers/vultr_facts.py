"""From Vultr's rows to our words. Pure.

A machine tells its plan and nothing of GPUs or prices: both stand in the lists of plans. Bare metal is another list, with other types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
from fleet.providers.reading import mib, utc
from fleet.providers.rows import Row, price

# The status, and the power's where the status is "active". Bare metal has no power status.
STATES: Mapping[str, InstanceState] = {
    "pending": InstanceState.PROVISIONING,
    "resizing": InstanceState.STARTING,
    "active": InstanceState.RUNNING,
    "running": InstanceState.RUNNING,
    "stopped": InstanceState.STOPPED,
    "suspended": InstanceState.UNREACHABLE,
    "failed": InstanceState.ERROR,
}
# A machine is charged from its creation until it is destroyed, halted or not.
BILLINGS: Mapping[str, Billing] = {
    "pending": Billing.FULL,
    "resizing": Billing.FULL,
    "active": Billing.FULL,
    "running": Billing.FULL,
    "stopped": Billing.FULL,
    "suspended": Billing.UNKNOWN,
    "failed": Billing.UNKNOWN,
}
IMAGE_STATES: Mapping[str, ImageState] = {"complete": ImageState.READY, "pending": ImageState.PENDING}
# GB of a whole card; a plan with less of it is a slice of one.
WHOLE_GB: Mapping[str, int] = {"A16": 16, "A40": 48, "A100": 80, "L40S": 48, "H100": 80, "GH200": 96, "H200": 141}
# "vbm-48c-1024gb-4-a100-gpu", "vbm-72c-480gb-gh200-gpu"
METAL = re.compile(r"-(?:(?P<count>\d+)-)?(?P<model>[a-z]+\d+[a-z]*)-gpu$")
# The hour is the month's price by 672 hours: https://docs.vultr.com/support/platform/billing
HOURS_PER_MONTH = Decimal(672)
NO_ADDRESS = {"", "0.0.0.0"}  # noqa: S104
BYTES_PER_GB = Decimal(1_000_000_000)
DISKS = re.compile(r"(\d+)\s*x\s*(\d+(?:\.\d+)?)\s*([GT])B", re.IGNORECASE)


def instance_of(row: Row, plans: Mapping[str, Row]) -> ProviderInstance:
    name, tags = str(row.get("label") or ""), row.get("tags") or ()
    raw, plan = state_word(row), plans.get(str(row["plan"]), {})
    metal = is_metal(row)
    return ProviderInstance(
        ref=Ref(str(row["id"]), str(row.get("region") or "")),
        name=name,
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=str(row.get("server_status") or ""),
        billing=BILLINGS.get(raw, Billing.UNKNOWN),
        market=Market.ON_DEMAND,
        instance_type=str(row["plan"]),
        **gpus_of(str(row["plan"]), plan),
        host_share=Decimal(1) if metal else None,
        vcpus=row.get("vcpu_count") or plan.get("cpu_threads") or row.get("cpu_count"),
        ram_mib=leading(row.get("ram")),
        disk_gb=disk_gb(row.get("disk")),
        rate=price_of(plan),
        ssh=addresses_of(row),
        image_id=str(row.get("snapshot_id") or row.get("image_id") or row.get("os_id") or ""),
        image_name=str(row.get("os") or ""),
        created_at=utc(row.get("date_created")),
        labels=labels_of(tags),
        extra={"bare_metal": metal, **client_token(*tags)},
    )


def is_metal(row: Row) -> bool:
    return "vcpu_count" not in row


def state_word(row: Row) -> str:
    status = str(row["status"])
    return str(row.get("power_status") or status) if status == "active" else status


def gpus_of(plan_id: str, plan: Row) -> dict[str, Any]:
    """Of a plan's own fields, or of a bare metal plan's name. {} of values where the plan is not known."""
    named = METAL.search(plan_id)
    if named:
        return metal_gpus(named["model"].upper(), int(named["count"] or 1))
    if not plan_id.startswith("vcg-"):
        return {"gpu_count": 0, "tenancy": Tenancy.DEDICATED_HOST if plan_id.startswith("vbm-") else Tenancy.UNKNOWN}
    raw, memory_gb = str(plan.get("gpu_type") or ""), plan.get("gpu_vram_gb")
    if not raw or not memory_gb:
        return {"gpu_count": None}
    return card_gpus(raw, int(memory_gb))


def metal_gpus(model: str, count: int) -> dict[str, Any]:
    memory_mib = mib(WHOLE_GB.get(model, 0)) or None
    return {
        "gpu_raw": model,
        "gpu_model": canonical(model, memory_mib=memory_mib, form="sxm"),
        "gpu_count": count,
        "gpu_memory_mib": memory_mib,
        "tenancy": Tenancy.DEDICATED_HOST,
    }


def card_gpus(raw: str, memory_gb: int) -> dict[str, Any]:
    """A plan tells the memory that it gets in all: a part of a card, one card, or several."""
    model = raw.upper().removeprefix("NVIDIA_").removeprefix("AMD_")
    whole_gb = WHOLE_GB.get(model)
    fraction = whole_gb is not None and memory_gb < whole_gb
    count = 1 if fraction or not whole_gb else max(1, memory_gb // whole_gb)
    return {
        "gpu_raw": raw,
        "gpu_model": canonical(model, memory_mib=mib(whole_gb)),
        "gpu_count": count,
        "gpu_memory_mib": mib(Decimal(memory_gb) / count),
        "tenancy": Tenancy.FRACTION if fraction else Tenancy.DEDICATED_GPU,
    }


def price_of(plan: Row) -> Money | None:
    month = price(plan.get("monthly_cost"), "USD")
    return price(plan.get("hourly_cost"), "USD") or (month and Money(month.amount / HOURS_PER_MONTH, month.currency))


def leading(value: object) -> int | None:
    """512000, and "512000 MB" as bare metal writes it."""
    return None if value is None or value == "" else int(str(value).split()[0])


def disk_gb(value: object) -> int | None:
    """80, and "2x 1.9TB NVMe" as bare metal writes it."""
    if value is None or isinstance(value, int):
        return value
    disks = DISKS.findall(str(value))
    total = sum(int(count) * Decimal(size) * (1000 if unit in "tT" else 1) for count, size, unit in disks)
    return int(total) if disks else None


def addresses_of(row: Row) -> tuple[Ssh, ...]:
    address = str(row.get("main_ip") or "")
    return (Ssh(address, user=str(row.get("user_scheme") or "root")),) if address not in NO_ADDRESS else ()


def image_of(row: Row) -> ProviderImage:
    size = row.get("size")
    return ProviderImage(
        external_id=str(row["id"]),
        name=str(row.get("description") or ""),
        created_at=utc(row.get("date_created")),
        state=IMAGE_STATES.get(str(row.get("status")), ImageState.UNKNOWN),
        size_gb=Decimal(size) / BYTES_PER_GB if size else None,
    )


def offers_of(plan: Row) -> Iterator[Offer]:
    """One for each region where a plan with GPUs may be used; whether one is free there, only trying tells."""
    plan_id = str(plan["id"])
    gpus = gpus_of(plan_id, plan)
    if not gpus["gpu_count"]:
        return
    for region in plan.get("locations") or ():
        yield Offer(
            external_id=plan_id,
            instance_type=plan_id,
            region=str(region),
            price=price_of(plan),
            gpu_interconnect="nvlink" if plan_id.startswith("vbm-") and gpus["gpu_count"] > 1 else "",
            vcpus=plan.get("vcpu_count") or plan.get("cpu_threads") or plan.get("cpu_count"),
            ram_mib=leading(plan.get("ram")),
            disk_gb=plan["disk"] * (plan.get("disk_count") or 1) if isinstance(plan.get("disk"), int) else None,
            disk_kind="nvme" if "NVMe" in str(plan.get("type", "")) else "",
            **gpus,
        )
