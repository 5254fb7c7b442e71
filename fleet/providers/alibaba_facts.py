"""From ECS's rows to our words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from fleet.providers.base import (
    Billing,
    ImageState,
    InstanceState,
    Market,
    Money,
    Notice,
    NoticeKind,
    ProviderImage,
    ProviderInstance,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.gpus import canonical
from fleet.providers.rows import Row, moment

STATES: Mapping[str, InstanceState] = {
    "Pending": InstanceState.PROVISIONING,
    "Starting": InstanceState.STARTING,
    "Running": InstanceState.RUNNING,
    "Stopping": InstanceState.STOPPING,
    "Stopped": InstanceState.STOPPED,
}
BILLINGS: Mapping[str, Billing] = {
    "Pending": Billing.FULL,
    "Starting": Billing.FULL,
    "Running": Billing.FULL,
    "Stopping": Billing.FULL,
}
# What a stopped machine costs lies in its mode. "Not-applicable" is said of those that cannot be stopped without being charged.
STOPPED_BILLINGS: Mapping[str, Billing] = {
    "StopCharging": Billing.STORAGE,
    "KeepCharging": Billing.FULL,
    "Not-applicable": Billing.FULL,
}
IMAGE_STATES: Mapping[str, ImageState] = {
    "Available": ImageState.READY,
    "Deprecated": ImageState.READY,
    "Creating": ImageState.PENDING,
    "Waiting": ImageState.PENDING,
    "UnAvailable": ImageState.FAILED,
    "CreateFailed": ImageState.FAILED,
}
LOCKS: Mapping[str, NoticeKind] = {
    "financial": NoticeKind.UNPAID,
    "Recycling": NoticeKind.INTERRUPTION,
    "dedicatedhostfinancial": NoticeKind.UNPAID,
    "security": NoticeKind.OTHER,
}
EVENTS: Mapping[str, NoticeKind] = {
    "InstanceFailure": NoticeKind.MAINTENANCE,
    "SystemFailure": NoticeKind.MAINTENANCE,
    "SystemMaintenance": NoticeKind.MAINTENANCE,
    "InstanceExpiration": NoticeKind.UNPAID,
    "AccountUnbalanced": NoticeKind.UNPAID,
}
# Families that carry a part of a GPU, and those that are a whole host.
FRACTIONS, BARE_METAL = ("ecs.vgn", "ecs.sgn"), ("ecs.ebm", "ecs.sccgn")


def instance_of(row: Row, prices: Mapping[tuple[str, Market], Money]) -> ProviderInstance:
    raw, market = row["Status"], market_of(row)
    kind = row.get("InstanceType", "")
    return ProviderInstance(
        ref=Ref(row["InstanceId"], row["RegionId"]),
        name=row.get("InstanceName") or row["InstanceId"],
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=", ".join([row.get("StoppedMode", "") if raw == "Stopped" else "", *locks_of(row)]).strip(", "),
        billing=billing_of(row),
        market=market,
        tenancy=tenancy_of(row),
        instance_type=kind,
        **gpus_of(row.get("GPUAmount"), row.get("GPUSpec")),
        vcpus=row.get("Cpu"),
        ram_mib=row.get("Memory"),
        rate=prices.get((kind, market)),
        ssh=addresses_of(row),
        image_id=row.get("ImageId", ""),
        created_at=moment(row.get("CreationTime")),
        started_at=moment(row.get("StartTime")),
        expires_at=moment(row.get("AutoReleaseTime")) or paid_until(row),
        labels={tag["TagKey"]: tag.get("TagValue", "") for tag in row.get("Tags", {}).get("Tag", ())},
        extra={"zone": row.get("ZoneId", ""), "stopped_mode": row.get("StoppedMode", ""), "locks": locks_of(row)},
    )


def billing_of(row: Row) -> Billing:
    if row["Status"] == "Stopped":
        return STOPPED_BILLINGS.get(row.get("StoppedMode", ""), Billing.UNKNOWN)
    return BILLINGS.get(row["Status"], Billing.UNKNOWN)


def market_of(row: Row) -> Market:
    charge, spot = row.get("InstanceChargeType"), row.get("SpotStrategy", "NoSpot")
    if charge == "PrePaid":
        return Market.PREPAID
    if charge != "PostPaid":
        return Market.UNKNOWN
    return Market.ON_DEMAND if spot in {"NoSpot", ""} else Market.SPOT


def tenancy_of(row: Row) -> Tenancy:
    kind = row.get("InstanceType", "")
    if kind.startswith(FRACTIONS):
        return Tenancy.FRACTION
    on_own_host = row.get("DedicatedInstanceAttribute", {}).get("Tenancy") == "host"
    return Tenancy.DEDICATED_HOST if on_own_host or kind.startswith(BARE_METAL) else Tenancy.DEDICATED_GPU


def gpus_of(count: Any, spec: str | None) -> dict[str, Any]:
    """None where the row says nothing of GPUs; 0 for a type without one."""
    if not count:
        return {"gpu_count": None if count is None else 0}
    return {"gpu_count": int(count), "gpu_raw": spec or "", "gpu_model": canonical(spec or "")}


def addresses_of(row: Row) -> tuple[Ssh, ...]:
    public = row.get("PublicIpAddress", {}).get("IpAddress") or []
    elastic = [row.get("EipAddress", {}).get("IpAddress")]
    private = row.get("VpcAttributes", {}).get("PrivateIpAddress", {}).get("IpAddress") or []
    host = next((address for address in [*elastic, *public, *private] if address), None)
    return (Ssh(host),) if host else ()


def paid_until(row: Row) -> Any:
    """A prepaid term's end; a machine paid by use has a date a century away there."""
    return moment(row.get("ExpiredTime")) if row.get("InstanceChargeType") == "PrePaid" else None


def locks_of(row: Row) -> list[str]:
    return [lock["LockReason"] for lock in row.get("OperationLocks", {}).get("LockReason", ())]


def lock_notices(row: Row) -> Iterator[Notice]:
    for word in locks_of(row):
        yield Notice(
            ref=Ref(row["InstanceId"], row["RegionId"]),
            kind=LOCKS.get(word, NoticeKind.OTHER),
            key=f"lock:{word}",
            detail=word,
        )


def event_notice(row: Row, region: str) -> Notice:
    name = row["EventType"]["Name"]
    return Notice(
        ref=Ref(row["InstanceId"], region),
        kind=EVENTS.get(name.split(".")[0], NoticeKind.OTHER),
        key=row["EventId"],
        starts_at=moment(row.get("NotBefore")),
        detail=f"{name} {row.get('Reason', '')}".strip(),
    )


def image_of(row: Row, region: str) -> ProviderImage:
    size = row.get("Size")
    return ProviderImage(
        row["ImageId"],
        row.get("ImageName") or row["ImageId"],
        moment(row.get("CreationTime")),
        region,
        IMAGE_STATES.get(row.get("Status", ""), ImageState.UNKNOWN),
        None if size is None else Decimal(size),
    )
