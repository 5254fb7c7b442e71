"""From Compute Engine's rows to our words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.providers.base import (
    Billing,
    ImageState,
    InstanceState,
    Market,
    Notice,
    NoticeKind,
    ProviderImage,
    ProviderInstance,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.gpus import canonical
from fleet.providers.reading import whole
from fleet.providers.rows import Row, moment, number
from fleet.providers.typed import PriceTable

# https://cloud.google.com/compute/docs/instances/instance-lifecycle
STATES: Mapping[str, InstanceState] = {
    "PENDING": InstanceState.PROVISIONING,
    "PROVISIONING": InstanceState.PROVISIONING,
    "STAGING": InstanceState.PROVISIONING,
    "RUNNING": InstanceState.RUNNING,
    "PENDING_STOP": InstanceState.STOPPING,
    "STOPPING": InstanceState.STOPPING,
    # "Terminated" is Google's word for stopped: the machine and its disks are there.
    "TERMINATED": InstanceState.STOPPED,
    "STOPPED": InstanceState.STOPPED,
    "SUSPENDING": InstanceState.STOPPING,
    "SUSPENDED": InstanceState.STOPPED,
    "REPAIRING": InstanceState.UNREACHABLE,
    "DEPROVISIONING": InstanceState.TERMINATING,
}
BILLINGS: Mapping[str, Billing] = {
    "PENDING": Billing.STORAGE,
    "PROVISIONING": Billing.STORAGE,
    "STAGING": Billing.STORAGE,
    "RUNNING": Billing.FULL,
    "PENDING_STOP": Billing.FULL,
    "STOPPING": Billing.FULL,
    "TERMINATED": Billing.STORAGE,
    "STOPPED": Billing.STORAGE,
    "SUSPENDING": Billing.FULL,
    "SUSPENDED": Billing.STORAGE,
    "REPAIRING": Billing.UNKNOWN,
    "DEPROVISIONING": Billing.UNKNOWN,
}
MARKETS: Mapping[str, Market] = {
    "STANDARD": Market.ON_DEMAND,
    "SPOT": Market.SPOT,
    "RESERVATION_BOUND": Market.RESERVED,
    "FLEX_START": Market.ON_DEMAND,
}
IMAGE_STATES: Mapping[str, ImageState] = {
    "READY": ImageState.READY,
    "PENDING": ImageState.PENDING,
    "FAILED": ImageState.FAILED,
    "DELETING": ImageState.FAILED,
}
# Types that carry their GPUs without saying so in guestAccelerators: https://cloud.google.com/compute/docs/gpus
FAMILIES: tuple[tuple[str, str], ...] = (
    (r"a2-(?:highgpu|megagpu)-(\d+)g", "nvidia-tesla-a100"),
    (r"a2-ultragpu-(\d+)g", "nvidia-a100-80gb"),
    (r"a3-(?:highgpu|edgegpu)-(\d+)g", "nvidia-h100-80gb"),
    (r"a3-megagpu-(\d+)g", "nvidia-h100-mega-80gb"),
    (r"a3-ultragpu-(\d+)g", "nvidia-h200-141gb"),
    (r"a4-highgpu-(\d+)g", "nvidia-b200"),
    (r"a4x-highgpu-(\d+)g", "nvidia-gb200"),
)
CARDS: Mapping[str, tuple[str, int]] = {
    **{f"g2-standard-{vcpus}": ("nvidia-l4", 1) for vcpus in (4, 8, 12, 16, 32)},
    "g2-standard-24": ("nvidia-l4", 2),
    "g2-standard-48": ("nvidia-l4", 4),
    "g2-standard-96": ("nvidia-l4", 8),
}
# Google's names of accelerators in the words of our table, where they do not say the form.
MODELS: Mapping[str, str] = {
    "nvidia-tesla-a100": "A100 SXM4 40GB",
    "nvidia-a100-80gb": "A100 SXM4 80GB",
    "nvidia-h100-80gb": "H100 SXM5",
    "nvidia-h100-mega-80gb": "H100 SXM5",
    "nvidia-tesla-v100": "V100 SXM2 16GB",
}


def instance_of(row: Row, sizes: Mapping[tuple[str, str], Row], prices: PriceTable) -> ProviderInstance:
    raw, zone, kind = row["status"], tail(row["zone"]), tail(row["machineType"])
    size, market = sizes.get((zone, kind), {}), market_of(row)
    scheduling = row.get("resourceStatus", {}).get("scheduling", {})
    return ProviderInstance(
        ref=Ref(row["id"], zone),
        name=row["name"],
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=row.get("statusMessage", ""),
        billing=BILLINGS.get(raw, Billing.UNKNOWN),
        market=market,
        tenancy=tenancy_of(row),
        instance_type=kind,
        **gpus_of(accelerators_of(row, size, kind)),
        vcpus=size.get("guestCpus"),
        ram_mib=size.get("memoryMb"),
        disk_gb=disk_of(row),
        rate=prices.of(kind, region_of(zone), market) if plain(row, market) else None,
        ssh=addresses_of(row),
        created_at=moment(row.get("creationTimestamp")),
        started_at=moment(row.get("lastStartTimestamp")),
        stopped_at=moment(row.get("lastStopTimestamp")) if raw in {"TERMINATED", "STOPPED"} else None,
        expires_at=moment(scheduling.get("terminationTimestamp")),
        labels=row.get("labels", {}),
        extra={"zone": zone},
    )


def tail(address: str) -> str:
    return address.rsplit("/", 1)[-1]


def region_of(zone: str) -> str:
    return zone.rsplit("-", 1)[0]


def market_of(row: Row) -> Market:
    scheduling = row.get("scheduling", {})
    if scheduling.get("preemptible"):
        return Market.SPOT
    return MARKETS.get(scheduling.get("provisioningModel", "STANDARD"), Market.UNKNOWN)


def plain(row: Row, market: Market) -> bool:
    """Whether the type's own price is what the machine costs: cards that were added to it are charged beside it."""
    return market in {Market.ON_DEMAND, Market.SPOT} and not (
        row.get("guestAccelerators") and tail(row["machineType"]).startswith(("n1-", "custom-"))
    )


def tenancy_of(row: Row) -> Tenancy:
    return Tenancy.DEDICATED_HOST if row.get("scheduling", {}).get("nodeAffinities") else Tenancy.DEDICATED_GPU


def accelerators_of(row: Row, size: Row, kind: str) -> tuple[str, int]:
    """Google's name of the GPUs and their number: of the machine, else of its type, else of the type's name."""
    for told in row.get("guestAccelerators", ()):
        return tail(told["acceleratorType"]), int(told["acceleratorCount"])
    for told in size.get("accelerators", ()):
        return told["guestAcceleratorType"], int(told["guestAcceleratorCount"])
    for pattern, name in FAMILIES:
        if found := re.fullmatch(pattern, kind):
            return name, int(found[1])
    return CARDS.get(kind, ("", 0))


def gpus_of(accelerators: tuple[str, int]) -> dict[str, Any]:
    name, count = accelerators
    if not count:
        return {"gpu_count": 0}
    # A virtual workstation is the same card under a licence.
    plain_name = name.removesuffix("-vws")
    return {"gpu_raw": name, "gpu_count": count, "gpu_model": canonical(MODELS.get(plain_name) or plain_name)}


def disk_of(row: Row) -> int | None:
    sizes = [whole(disk.get("diskSizeGb")) for disk in row.get("disks", ())]
    return sum(size for size in sizes if size is not None) if None not in sizes else None


def addresses_of(row: Row) -> tuple[Ssh, ...]:
    """The login name lies in the keys or in OS Login; the API does not tell it."""
    interfaces = row.get("networkInterfaces", ())
    public = [config.get("natIP") for each in interfaces for config in each.get("accessConfigs", ())]
    host = next((address for address in [*public, *(each.get("networkIP") for each in interfaces)] if address), None)
    return (Ssh(host, user=""),) if host else ()


def maintenance(row: Row) -> Iterator[Notice]:
    told = row.get("resourceStatus", {}).get("upcomingMaintenance")
    if told:
        starts = moment(told.get("windowStartTime"))
        yield Notice(
            ref=Ref(row["id"], tail(row["zone"])),
            kind=NoticeKind.MAINTENANCE,
            key=f"maintenance:{told.get('windowStartTime', '')}",
            starts_at=starts,
            detail=", ".join([told.get("type", ""), *told.get("maintenanceReasons", ())]).strip(", "),
        )


def image_of(row: Row) -> ProviderImage:
    return ProviderImage(
        row["name"],
        row["name"],
        moment(row.get("creationTimestamp")),
        state=IMAGE_STATES.get(row.get("status", ""), ImageState.UNKNOWN),
        size_gb=number(row.get("diskSizeGb")),
    )
