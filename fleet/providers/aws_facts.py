"""From EC2's rows to our words. Pure: what the calls told goes in, machines come out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from fleet.providers.base import (
    Billing,
    Capability,
    ImageState,
    InstanceState,
    Market,
    Money,
    ProviderImage,
    ProviderInstance,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.gpus import canonical
from fleet.providers.typed import PriceTable

STATES: Mapping[str, InstanceState] = {
    "pending": InstanceState.PROVISIONING,
    "running": InstanceState.RUNNING,
    "shutting-down": InstanceState.TERMINATING,
    "terminated": InstanceState.TERMINATED,
    "stopping": InstanceState.STOPPING,
    "stopped": InstanceState.STOPPED,
}
# EC2 charges while running; EBS volumes and elastic addresses are charged for as long as they are there.
BILLINGS: Mapping[str, Billing] = {
    "pending": Billing.STORAGE,
    "running": Billing.FULL,
    "shutting-down": Billing.NONE,
    "terminated": Billing.NONE,
    "stopping": Billing.STORAGE,
    "stopped": Billing.STORAGE,
}
MARKETS: Mapping[str, Market] = {
    "": Market.ON_DEMAND,
    "spot": Market.SPOT,
    "scheduled": Market.RESERVED,
    # Paid when the block is bought, whether or not a machine runs in it.
    "capacity-block": Market.PREPAID,
    "interruptible-capacity-reservation": Market.SPOT,
}
TENANCIES: Mapping[str, Tenancy] = {
    "default": Tenancy.DEDICATED_GPU,
    "dedicated": Tenancy.DEDICATED_HOST,
    "host": Tenancy.DEDICATED_HOST,
}
# GpuInfo names the chip only. The P families carry modules, the G families cards.
FORMS = (("p", "sxm"), ("g", "pcie"))
# "User initiated (2026-11-30 06:41:14 GMT)"
TRANSITION_TIME = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
# EC2 quotes EBS per GB-month and bills it by the second; a month is taken as 8,760 h / 12.
HOURS_PER_MONTH = Decimal(730)


# What EC2 accepts in a state; a stop of one-time spot and of machines without a root volume is left out.
ACTIONS: Mapping[str, frozenset[Capability]] = {
    "pending": frozenset({Capability.TERMINATE}),
    "running": frozenset({Capability.STOP, Capability.TERMINATE, Capability.REBOOT, Capability.SAVE_IMAGE}),
    "stopping": frozenset({Capability.TERMINATE}),
    "stopped": frozenset({Capability.START, Capability.TERMINATE, Capability.SAVE_IMAGE}),
    "shutting-down": frozenset(),
    "terminated": frozenset(),
}
IMAGE_STATES: Mapping[str, ImageState] = {
    "available": ImageState.READY,
    "disabled": ImageState.FAILED,
    "pending": ImageState.PENDING,
    "transient": ImageState.PENDING,
    "failed": ImageState.FAILED,
    "error": ImageState.FAILED,
    "invalid": ImageState.FAILED,
    "deregistered": ImageState.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What the account's admin typed, of machines and of EBS for a GB a month."""

    machines: PriceTable
    storage: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What other calls told of a region's machines. An empty mapping: not known."""

    types: Mapping[str, dict[str, Any]]
    volume_gb: Mapping[str, int]
    image_names: Mapping[str, str]
    spot_prices: Mapping[tuple[str, str, str], Decimal]
    spot_requests: Mapping[str, str]
    prices: Prices


def instance_of(row: dict[str, Any], region: str, facts: Facts) -> ProviderInstance:
    raw, kind = row["State"]["Name"], row["InstanceType"]
    tags = {tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}
    size, disk_gb = facts.types.get(kind), facts.volume_gb.get(row["InstanceId"])
    market = market_of(row)
    image_id = row.get("ImageId", "")
    return ProviderInstance(
        ref=Ref(row["InstanceId"], region),
        name=tags.get("Name") or row["InstanceId"],
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=row.get("StateReason", {}).get("Message", "") or row.get("StateTransitionReason", ""),
        billing=billing_of(row),
        market=market,
        tenancy=tenancy_of(row, size),
        instance_type=kind,
        **gpus_of(kind, size),
        vcpus=size["VCpuInfo"]["DefaultVCpus"] if size else None,
        ram_mib=size["MemoryInfo"]["SizeInMiB"] if size else None,
        disk_gb=disk_gb,
        rate=rate_of(row, region, market, facts),
        storage_rate=storage_rate_of(region, disk_gb, facts),
        ssh=addresses_of(row),
        image_id=image_id,
        image_name=facts.image_names.get(image_id, ""),
        created_at=created_at(row),
        started_at=row.get("LaunchTime"),
        stopped_at=stopped_at(row),
        labels=tags,
        actions=actions_of(row, facts),
        extra={
            "zone": row["Placement"].get("AvailabilityZone", ""),
            "platform": platform_of(row),
            "client_token": row.get("ClientToken", ""),
        },
    )


def billing_of(row: dict[str, Any]) -> Billing:
    raw = row["State"]["Name"]
    if raw == "stopping" and row.get("HibernationOptions", {}).get("Configured"):
        return Billing.FULL
    # Its dedicated host goes on being charged, and is no machine that we list.
    if raw == "stopped" and row["Placement"].get("Tenancy") == "host":
        return Billing.UNKNOWN
    return BILLINGS.get(raw, Billing.UNKNOWN)


def market_of(row: dict[str, Any]) -> Market:
    return MARKETS.get(row.get("InstanceLifecycle", ""), Market.UNKNOWN)


def tenancy_of(row: dict[str, Any], size: dict[str, Any] | None) -> Tenancy:
    if size and size.get("BareMetal"):
        return Tenancy.DEDICATED_HOST
    if size and any(gpu.get("GpuPartitionSize", 1) < 1 for gpu in size.get("GpuInfo", {}).get("Gpus", ())):
        return Tenancy.FRACTION
    return TENANCIES.get(row["Placement"].get("Tenancy", "default"), Tenancy.UNKNOWN)


def gpus_of(kind: str, size: dict[str, Any] | None) -> dict[str, Any]:
    """None for a type whose facts are not known; 0 for one without GPUs."""
    if size is None:
        return {"gpu_count": None}
    gpus = size.get("GpuInfo", {}).get("Gpus", ())
    if not gpus:
        return {"gpu_count": 0}
    first = gpus[0]
    memory_mib = first.get("MemoryInfo", {}).get("SizeInMiB")
    return {
        "gpu_raw": first["Name"],
        "gpu_model": canonical(first["Name"], memory_mib=memory_mib, form=form_of(kind)),
        # A fraction of a GPU has Count 0 and one logical GPU.
        "gpu_count": sum(gpu.get("LogicalGpuCount") or gpu.get("Count", 0) for gpu in gpus),
        "gpu_memory_mib": memory_mib,
    }


def form_of(kind: str) -> str:
    return next((form for family, form in FORMS if kind.startswith(family)), "")


def rate_of(row: dict[str, Any], region: str, market: Market, facts: Facts) -> Money | None:
    """Spot as read, on demand as typed, all else unknown: who reserved or bought ahead pays what no call tells."""
    kind, placement = row["InstanceType"], row["Placement"]
    if market is Market.SPOT:
        amount = facts.spot_prices.get((kind, placement.get("AvailabilityZone", ""), platform_of(row)))
        return None if amount is None else Money(amount, currency_of(region))
    if market is Market.ON_DEMAND and placement.get("Tenancy") != "host":
        return facts.prices.machines.of(kind, region, market)
    return None


def storage_rate_of(region: str, disk_gb: int | None, facts: Facts) -> Money | None:
    if disk_gb is None or facts.prices.storage is None:
        return None
    return Money(disk_gb * facts.prices.storage / HOURS_PER_MONTH, currency_of(region))


def actions_of(row: dict[str, Any], facts: Facts) -> frozenset[Capability] | None:
    """None: EC2 did not say enough to know, a state or a kind of spot request that is new."""
    actions = ACTIONS.get(row["State"]["Name"])
    if actions is None:
        return None
    if row.get("RootDeviceType") == "instance-store":
        return actions - {Capability.STOP}
    if market_of(row) is not Market.SPOT:
        return actions
    request = facts.spot_requests.get(row.get("SpotInstanceRequestId", ""))
    if request == "one-time":
        return actions - {Capability.STOP, Capability.START}
    return actions if request == "persistent" else None


def currency_of(region: str) -> str:
    return "CNY" if region.startswith("cn-") else "USD"


def platform_of(row: dict[str, Any]) -> str:
    return str(row.get("PlatformDetails") or "Linux/UNIX")


def addresses_of(row: dict[str, Any]) -> tuple[Ssh, ...]:
    """The login name lies in the image; EC2 does not tell it."""
    host = row.get("PublicIpAddress") or row.get("PrivateIpAddress")
    return (Ssh(host, user=""),) if host else ()


def created_at(row: dict[str, Any]) -> datetime | None:
    """LaunchTime moves with each start; the first network interface was attached when the machine was made."""
    attached = [
        interface["Attachment"]["AttachTime"]
        for interface in row.get("NetworkInterfaces", ())
        if interface.get("Attachment", {}).get("AttachTime")
    ]
    return min(attached, default=None)


def stopped_at(row: dict[str, Any]) -> datetime | None:
    found = TRANSITION_TIME.search(row.get("StateTransitionReason", ""))
    return datetime.fromisoformat(found[1]).replace(tzinfo=UTC) if found else None


def image_of(row: dict[str, Any], region: str) -> ProviderImage:
    created = row.get("CreationDate")
    sizes = [disk["Ebs"].get("VolumeSize") for disk in row.get("BlockDeviceMappings", ()) if "Ebs" in disk]
    return ProviderImage(
        row["ImageId"],
        row.get("Name", ""),
        datetime.fromisoformat(created) if created else None,
        region,
        IMAGE_STATES.get(row.get("State", ""), ImageState.UNKNOWN),
        Decimal(sum(sizes)) if sizes and None not in sizes else None,
    )
