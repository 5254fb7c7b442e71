"""From CVM's rows to our words. Pure."""

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
from fleet.providers.reading import mib
from fleet.providers.rows import Row, moment, number

# https://cloud.tencent.com/document/api/213/15753#InstanceStatus
STATES: Mapping[str, InstanceState] = {
    "PENDING": InstanceState.PROVISIONING,
    "LAUNCH_FAILED": InstanceState.ERROR,
    "RUNNING": InstanceState.RUNNING,
    "STOPPED": InstanceState.STOPPED,
    "STARTING": InstanceState.STARTING,
    "STOPPING": InstanceState.STOPPING,
    "REBOOTING": InstanceState.STARTING,
    # In the recycle bin: stopped, and destroyed some hours later.
    "SHUTDOWN": InstanceState.TERMINATING,
    "TERMINATING": InstanceState.TERMINATING,
}
BILLINGS: Mapping[str, Billing] = {
    "PENDING": Billing.FULL,
    "LAUNCH_FAILED": Billing.NONE,
    "RUNNING": Billing.FULL,
    "STARTING": Billing.FULL,
    "STOPPING": Billing.FULL,
    "REBOOTING": Billing.FULL,
    # Which of its disks and addresses are charged for in the recycle bin, no field tells.
    "SHUTDOWN": Billing.UNKNOWN,
    "TERMINATING": Billing.UNKNOWN,
}
# "NOT_APPLICABLE" is said of stopped machines that cannot be stopped without being charged.
STOPPED_BILLINGS: Mapping[str, Billing] = {
    "STOP_CHARGING": Billing.STORAGE,
    "KEEP_CHARGING": Billing.FULL,
    "NOT_APPLICABLE": Billing.FULL,
}
MARKETS: Mapping[str, Market] = {
    "POSTPAID_BY_HOUR": Market.ON_DEMAND,
    "SPOTPAID": Market.SPOT,
    "PREPAID": Market.PREPAID,
    # On a host of one's own, which is what is paid for.
    "CDHPAID": Market.PREPAID,
    "CDCPAID": Market.PREPAID,
}
IMAGE_STATES: Mapping[str, ImageState] = {
    "NORMAL": ImageState.READY,
    "CREATING": ImageState.PENDING,
    "SYNCING": ImageState.PENDING,
    "IMPORTING": ImageState.PENDING,
    "CREATEFAILED": ImageState.FAILED,
    "IMPORTFAILED": ImageState.FAILED,
}
BARE_METAL = ("BM", "HCC")
Prices = Mapping[tuple[str, str, Market], Money]


def instance_of(row: Row, region: str, prices: Prices) -> ProviderInstance:
    raw, kind = row["InstanceState"], row.get("InstanceType", "")
    market, zone = market_of(row), row.get("Placement", {}).get("Zone", "")
    tags = {tag["Key"]: tag.get("Value") or "" for tag in row.get("Tags") or ()}
    return ProviderInstance(
        ref=Ref(row["InstanceId"], region),
        name=row.get("InstanceName") or row["InstanceId"],
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=reason_of(row),
        billing=billing_of(row),
        market=market,
        tenancy=tenancy_of(kind, gpu_count(row), row.get("InstanceChargeType", "")),
        instance_type=kind,
        **gpus_of(gpu_count(row), (row.get("GPUInfo") or {}).get("GPUType")),
        vcpus=row.get("CPU"),
        ram_mib=mib(row.get("Memory")),
        disk_gb=disk_of(row),
        rate=prices.get((zone, kind, market)),
        ssh=addresses_of(row),
        image_id=row.get("ImageId") or "",
        created_at=moment(row.get("CreatedTime")),
        expires_at=moment(row.get("ExpiredTime")),
        labels=tags,
        extra={"zone": zone, "stop_charging_mode": row.get("StopChargingMode") or ""},
    )


def reason_of(row: Row) -> str:
    """What keeps a machine from its usual life: no money, the recycle bin, an act that failed, how it is charged while stopped."""
    isolated, restricted = row.get("IsolatedSource") or "NOTISOLATED", row.get("RestrictState") or "NORMAL"
    failed = row.get("LatestOperationErrorMsg") if row.get("LatestOperationState") == "FAILED" else None
    mode = row.get("StopChargingMode") if row["InstanceState"] == "STOPPED" else None
    words = [
        isolated if isolated != "NOTISOLATED" else None,
        restricted if restricted != "NORMAL" else None,
        failed,
        mode,
    ]
    return ", ".join(word for word in words if word)


def billing_of(row: Row) -> Billing:
    if row["InstanceState"] == "STOPPED":
        return STOPPED_BILLINGS.get(row.get("StopChargingMode") or "", Billing.UNKNOWN)
    return BILLINGS.get(row["InstanceState"], Billing.UNKNOWN)


def market_of(row: Row) -> Market:
    return MARKETS.get(row.get("InstanceChargeType") or "", Market.UNKNOWN)


def gpu_count(row: Row) -> Decimal:
    """Rows of types without GPUs have no GPUInfo; a share of a card is counted as a fraction."""
    return number((row.get("GPUInfo") or {}).get("GPUCount")) or Decimal(0)


def tenancy_of(kind: str, gpus: Decimal, charge: str) -> Tenancy:
    if 0 < gpus < 1:
        return Tenancy.FRACTION
    on_own_host = charge in {"CDHPAID", "CDCPAID"} or kind.startswith(BARE_METAL)
    return Tenancy.DEDICATED_HOST if on_own_host else Tenancy.DEDICATED_GPU


def gpus_of(count: Decimal, kind: str | None) -> dict[str, Any]:
    if not count:
        return {"gpu_count": 0}
    return {"gpu_count": max(int(count), 1), "gpu_raw": kind or "", "gpu_model": canonical(kind or "")}


def disk_of(row: Row) -> int | None:
    disks = [row.get("SystemDisk") or {}, *(row.get("DataDisks") or ())]
    sizes = [disk.get("DiskSize") for disk in disks]
    return None if None in sizes else sum(sizes)


def addresses_of(row: Row) -> tuple[Ssh, ...]:
    addresses = [*(row.get("PublicIpAddresses") or ()), *(row.get("PrivateIpAddresses") or ())]
    if not addresses:
        return ()
    return (Ssh(addresses[0], row.get("DefaultLoginPort") or 22, row.get("DefaultLoginUser") or "root"),)


def unpaid_notice(row: Row, region: str) -> Iterator[Notice]:
    if row.get("IsolatedSource") in {"ARREAR", "EXPIRE"} or row.get("RestrictState") == "EXPIRED":
        word = row.get("IsolatedSource") or "EXPIRED"
        yield Notice(ref=Ref(row["InstanceId"], region), kind=NoticeKind.UNPAID, key=f"isolated:{word}", detail=word)


def task_notice(row: Row, region: str) -> Notice:
    """A repair task. Its times carry no zone: none is told."""
    words = [row.get("TaskTypeName") or "", row.get("TaskDetail") or ""]
    return Notice(
        ref=Ref(row["InstanceId"], region),
        kind=NoticeKind.MAINTENANCE,
        key=row["TaskId"],
        detail=" ".join(word for word in words if word),
    )


def image_of(row: Row, region: str) -> ProviderImage:
    return ProviderImage(
        row["ImageId"],
        row.get("ImageName") or row["ImageId"],
        moment(row.get("CreatedTime")),
        region,
        IMAGE_STATES.get(row.get("ImageState") or "", ImageState.UNKNOWN),
        number(row.get("ImageSize")),
    )
