"""From Crusoe's rows to our words. Pure. No price stands in this API: what a type costs is typed, or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fleet.providers.base import (
    Billing,
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
from fleet.providers.orders import client_token
from fleet.providers.reading import mib, whole
from fleet.providers.rows import Row, moment
from fleet.providers.typed import PriceTable

# Written with and without "STATE_" in front.
STATES: Mapping[str, InstanceState] = {
    "CREATING": InstanceState.PROVISIONING,
    "STARTING": InstanceState.STARTING,
    "RUNNING": InstanceState.RUNNING,
    "STOPPING": InstanceState.STOPPING,
    "SHUTOFF": InstanceState.STOPPED,
    "DELETING": InstanceState.TERMINATING,
    "DELETED": InstanceState.TERMINATED,
}
BILLINGS: Mapping[str, Billing] = {
    "STARTING": Billing.FULL,
    "RUNNING": Billing.FULL,
    "STOPPING": Billing.FULL,
    "SHUTOFF": Billing.STORAGE,
    "DELETED": Billing.NONE,
}
MARKETS: Mapping[str, Market] = {"On-demand": Market.ON_DEMAND, "Spot": Market.SPOT}
PREFIX = "STATE_"
# "h100-80gb-sxm-ib.8x", "l40s-48gb.1x", "a100.2x"
TYPE = re.compile(r"^(?P<chip>[a-z0-9]+)(?:-(?P<memory>\d+)gb)?(?P<rest>[a-z0-9-]*)\.(?P<count>\d+)x$")
SIZE = re.compile(r"^(\d+)\s*([GT])i?B?$", re.IGNORECASE)


def word_of(row: Row) -> str:
    return str(row.get("state") or "").removeprefix(PREFIX)


def instance_of(row: Row, types: Mapping[str, Row], prices: PriceTable) -> ProviderInstance:
    word, kind = word_of(row), str(row.get("type") or "")
    market = Market.RESERVED if row.get("reservation_id") else MARKETS.get(str(row.get("billing_type")), Market.UNKNOWN)
    location = str(row.get("location") or "")
    return ProviderInstance(
        ref=Ref(str(row["id"]), location),
        name=str(row["name"]),
        state=STATES.get(word, InstanceState.UNKNOWN),
        raw_state=str(row["state"]),
        billing=billing_of(word, market),
        market=market,
        instance_type=kind,
        **size_of(kind, types.get(kind, {})),
        disk_gb=disk_gb(row.get("disks") or ()),
        rate=prices.of(kind, location, market),
        ssh=addresses_of(row),
        created_at=moment(row.get("created_at")),
        extra={
            "maintenance_policy": str(row.get("maintenance_policy") or ""),
            "reservation_id": str(row.get("reservation_id") or ""),
            **client_token(row["name"]),
        },
    )


def billing_of(word: str, market: Market) -> Billing:
    """What is reserved is paid on while it is stopped, by the reservation, which is no machine."""
    if word == "SHUTOFF" and market is Market.RESERVED:
        return Billing.UNKNOWN
    return BILLINGS.get(word, Billing.UNKNOWN)


def size_of(kind: str, known: Row) -> dict[str, Any]:
    """By the list of types, and by the type's name where it is not in there."""
    named = TYPE.match(kind)
    count = known["num_gpu"] if known else int(named["count"]) if named else None
    size = {"vcpus": known.get("cpu_cores"), "ram_mib": mib(known.get("memory_gb"))}
    if not count or (known and not known.get("gpu_type")):
        return {**size, "gpu_count": 0 if known else None}
    return {**size, **gpus_of(named, str(known.get("gpu_type") or kind.split(".", maxsplit=1)[0]), count)}


def gpus_of(named: re.Match[str] | None, raw: str, count: int) -> dict[str, Any]:
    rest = named["rest"] if named else ""
    form = next((form for form in ("sxm", "pcie") if form in rest), "")
    memory_mib = mib(named["memory"]) if named and named["memory"] else None
    return {
        "gpu_raw": raw,
        "gpu_model": canonical(named["chip"].upper() if named else raw, memory_mib=memory_mib, form=form),
        "gpu_count": count,
        "gpu_memory_mib": memory_mib,
        "tenancy": Tenancy.DEDICATED_GPU,
    }


def disk_gb(disks: Iterable[Row]) -> int | None:
    """The sum of "10GiB", "1TiB". None where one is written otherwise: a part would be a wrong sum."""
    sizes = [SIZE.match(str(disk.get("size") or "")) for disk in disks]
    if not sizes or not all(sizes):
        return None
    return sum(int(size[1]) * (1024 if size[2] in "tT" else 1) for size in sizes if size)


def addresses_of(row: Row) -> tuple[Ssh, ...]:
    found = [
        (address.get("public_ipv4") or {}).get("address")
        for interface in row.get("network_interfaces") or ()
        for address in interface.get("ips") or ()
    ]
    return tuple(Ssh(str(address), user="ubuntu") for address in found if address)


def image_of(row: Row) -> ProviderImage:
    return ProviderImage(
        external_id=str(row["id"]),
        name=str(row["name"]),
        created_at=moment(row.get("created_at")),
        region=", ".join(row.get("locations") or ()),
    )


def system_disk(row: Row) -> str:
    """Raises LookupError where the machine has none."""
    return next(str(disk["id"]) for disk in row["disks"] if disk.get("attachment_type") == "os")


def offers_of(types: Mapping[str, Row], capacities: Iterable[Row], prices: PriceTable) -> Iterator[Offer]:
    """One for each place that has a type with GPUs; several kinds of quota may count one place more than once."""
    free: dict[tuple[str, str], int] = {}
    for row in capacities:
        key = (str(row.get("type") or ""), str(row["location"]))
        free[key] = max(free.get(key, 0), int(row["quantity"]))
    for (kind, location), quantity in free.items():
        known = types.get(kind)
        if known and known["num_gpu"]:
            yield Offer(
                external_id=kind,
                instance_type=kind,
                region=location,
                available=quantity > 0,
                price=prices.of(kind, location, Market.ON_DEMAND),
                gpu_interconnect="nvlink" if "-sxm" in kind and known["num_gpu"] > 1 else "",
                disk_gb=whole(known.get("disk_gb")) or None,
                disk_kind="nvme" if known.get("disk_gb") else "",
                **size_of(kind, known),
            )
