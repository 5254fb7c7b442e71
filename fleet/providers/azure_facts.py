"""From Azure's rows to our words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleet.providers.azure_sizes import gpus_of, tenancy_of
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
from fleet.providers.reading import whole
from fleet.providers.rows import Row, moment, number
from fleet.providers.typed import PriceTable

# https://learn.microsoft.com/azure/virtual-machines/states-billing
STATES: Mapping[str, InstanceState] = {
    "PowerState/creating": InstanceState.PROVISIONING,
    "PowerState/starting": InstanceState.STARTING,
    "PowerState/running": InstanceState.RUNNING,
    "PowerState/stopping": InstanceState.STOPPING,
    "PowerState/stopped": InstanceState.STOPPED,
    "PowerState/deallocating": InstanceState.STOPPING,
    "PowerState/deallocated": InstanceState.STOPPED,
    "ProvisioningState/creating": InstanceState.PROVISIONING,
    "ProvisioningState/failed": InstanceState.ERROR,
    "ProvisioningState/deleting": InstanceState.TERMINATING,
}
BILLINGS: Mapping[str, Billing] = {
    "PowerState/creating": Billing.STORAGE,
    "PowerState/starting": Billing.FULL,
    "PowerState/running": Billing.FULL,
    "PowerState/stopping": Billing.FULL,
    # Stopped in the machine itself or by "power off": the hardware stays taken, and is paid for.
    "PowerState/stopped": Billing.FULL,
    "PowerState/deallocating": Billing.FULL,
    "PowerState/deallocated": Billing.STORAGE,
    "ProvisioningState/creating": Billing.STORAGE,
}
MARKETS: Mapping[str, Market] = {
    "Regular": Market.ON_DEMAND,
    "Spot": Market.SPOT,
    "Low": Market.SPOT,
}
IMAGE_STATES: Mapping[str, ImageState] = {
    "Succeeded": ImageState.READY,
    "Creating": ImageState.PENDING,
    "Updating": ImageState.PENDING,
    "Failed": ImageState.FAILED,
    "Deleting": ImageState.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What other calls told. Sizes by (location, name), addresses by the machine's id, all in lower case."""

    sizes: Mapping[tuple[str, str], Row]
    addresses: Mapping[str, str]
    prices: PriceTable


def instance_of(row: Row, facts: Facts) -> ProviderInstance:
    told = row["properties"]
    size, location = told["hardwareProfile"]["vmSize"], row["location"]
    raw, market = raw_state_of(told), market_of(told)
    facts_of_size = facts.sizes.get((location.lower(), size.lower()), {})
    host = facts.addresses.get(row["id"].lower())
    return ProviderInstance(
        ref=ref_of(row),
        name=row["name"],
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=reason_of(told),
        billing=BILLINGS.get(raw, Billing.UNKNOWN),
        market=market,
        tenancy=Tenancy.DEDICATED_HOST if told.get("host") or told.get("hostGroup") else tenancy_of(size),
        instance_type=size,
        **gpus_of(size),
        vcpus=whole(facts_of_size.get("numberOfCores")),
        ram_mib=whole(facts_of_size.get("memoryInMB")),
        disk_gb=disk_of(told),
        rate=facts.prices.of(size, location, market),
        ssh=(Ssh(host, user=told.get("osProfile", {}).get("adminUsername", "")),) if host else (),
        created_at=moment(told.get("timeCreated")),
        labels=row.get("tags") or {},
        extra={"vm_id": told.get("vmId", ""), "zone": ",".join(row.get("zones") or ())},
    )


def ref_of(row: Row) -> Ref:
    """Group and name: Azure writes the group now in capitals, now not, and looks at neither."""
    parts = row["id"].split("/")
    return Ref(f"{parts[parts.index('resourceGroups') + 1].lower()}/{row['name']}", row["location"])


def raw_state_of(told: Row) -> str:
    """The power state, but of what is being deleted; the provisioning state where there is no power state yet."""
    codes = [status["code"] for status in told.get("instanceView", {}).get("statuses", ())]
    provisioning = f"ProvisioningState/{told.get('provisioningState', 'unknown').lower()}"
    power = next((code for code in codes if code.startswith("PowerState/")), provisioning)
    return provisioning if provisioning == "ProvisioningState/deleting" else power


def reason_of(told: Row) -> str:
    statuses = told.get("instanceView", {}).get("statuses", ())
    failed = [status for status in statuses if status.get("level") == "Error"]
    return ", ".join(status.get("message") or status["code"] for status in failed)


def market_of(told: Row) -> Market:
    return MARKETS.get(told.get("priority") or "Regular", Market.UNKNOWN)


def disk_of(told: Row) -> int | None:
    """Sizes of disks that were deallocated with their machine are not told."""
    profile = told.get("storageProfile", {})
    sizes = [whole(disk.get("diskSizeGB")) for disk in [profile.get("osDisk", {}), *profile.get("dataDisks", ())]]
    return sum(size for size in sizes if size is not None) if None not in sizes else None


def maintenance(row: Row) -> Iterator[Notice]:
    told = row["properties"].get("instanceView", {}).get("maintenanceRedeployStatus")
    if told:
        starts = told.get("maintenanceWindowStartTime")
        detail = told.get("lastOperationMessage", "")
        key = f"maintenance:{starts}"
        yield Notice(ref=ref_of(row), kind=NoticeKind.MAINTENANCE, key=key, starts_at=moment(starts), detail=detail)


def image_of(row: Row) -> ProviderImage:
    told = row.get("properties", {})
    return ProviderImage(
        row["id"],
        row["name"],
        region=row.get("location", ""),
        state=IMAGE_STATES.get(told.get("provisioningState", ""), ImageState.UNKNOWN),
        size_gb=number(told.get("storageProfile", {}).get("osDisk", {}).get("diskSizeGB")),
    )


def addresses_of(interfaces: list[Row], public: list[Row]) -> dict[str, str]:
    """The address of each machine, its public one before its private one, by the machine's id in lower case."""
    known = {row["id"].lower(): row["properties"].get("ipAddress") for row in public}
    found: dict[str, str] = {}
    for interface in interfaces:
        machine = (interface["properties"].get("virtualMachine") or {}).get("id", "").lower()
        parts = [each["properties"] for each in interface["properties"].get("ipConfigurations", ())]
        outer = [known.get((part.get("publicIPAddress") or {}).get("id", "").lower()) for part in parts]
        address = next((each for each in [*outer, *(part.get("privateIPAddress") for part in parts)] if each), None)
        if machine and address:
            found.setdefault(machine, address)
    return found
