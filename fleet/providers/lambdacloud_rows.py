"""Lambda's rows in our words, and our orders in its."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fleet.providers.base import (
    Billing,
    Capability,
    CreateSpec,
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
from fleet.providers.errors import Invalid
from fleet.providers.gpus import canonical
from fleet.providers.orders import no_price_limit, on_demand, own_disk
from fleet.providers.rows import Row, moment, number

LABEL = "Lambda"
STATES: Mapping[str, InstanceState] = {
    "booting": InstanceState.STARTING,
    "active": InstanceState.RUNNING,
    "unhealthy": InstanceState.UNREACHABLE,
    "terminating": InstanceState.TERMINATING,
    "terminated": InstanceState.TERMINATED,
    # Taken back by Lambda. Nothing starts it again, and whether it is billed until it is ended is not said.
    "preempted": InstanceState.ERROR,
}
# From when on a machine is charged is not said: as long as it is there, it counts.
BILLING: Mapping[str, Billing] = {
    "booting": Billing.FULL,
    "active": Billing.FULL,
    "unhealthy": Billing.FULL,
    "terminating": Billing.FULL,
    "terminated": Billing.NONE,
    "preempted": Billing.UNKNOWN,
}
ACTIONS: Mapping[str, Capability] = {"restart": Capability.REBOOT, "terminate": Capability.TERMINATE}
USER = "ubuntu"
MAX_NAME_CHARS, MAX_TAG_KEY_CHARS, MAX_TAG_CHARS = 64, 55, 128
TOKEN_TAG = "rackrent-token"  # noqa: S105 - the name of a tag
# "H100 (80 GB SXM5)", "A10 (24 GB PCIe)", "GH200 (96 GB)"
GPU = re.compile(r"(?P<chip>.+?) \((?P<gb>\d+) GB(?: (?P<form>[A-Za-z]+)\d*)?\)")
IMAGE_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


def instance_of(row: Row) -> ProviderInstance:
    raw, kind = str(row["status"]), row["instance_type"]
    return ProviderInstance(
        ref=Ref(str(row["id"])),
        name=str(row.get("name") or row.get("hostname") or row["id"]),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        billing=BILLING.get(raw, Billing.UNKNOWN),
        market=Market.ON_DEMAND,
        tenancy=Tenancy.DEDICATED_GPU,
        instance_type=str(kind["name"]),
        rate=hourly(kind),
        ssh=(Ssh(str(row["ip"]), user=USER),) if row.get("ip") else (),
        labels={str(tag["key"]): str(tag["value"]) for tag in row.get("tags") or ()},
        actions=frozenset(act for word, act in ACTIONS.items() if (row["actions"].get(word) or {}).get("available")),
        # Never jupyter_token and jupyter_url: both let anybody in.
        extra={"region": str(row["region"]["name"]), "file_systems": list(row.get("file_system_names") or ())},
        gpu_raw=gpu_raw(kind),
        gpu_model=gpu_model(kind),
        gpu_count=kind["specs"]["gpus"],
        gpu_memory_mib=gpu_memory_mib(kind),
        vcpus=kind["specs"]["vcpus"],
        ram_mib=kind["specs"]["memory_gib"] * 1024,
        disk_gb=kind["specs"]["storage_gib"],
    )


def offers_of(row: Row) -> Iterator[Offer]:
    """A type in each region that has it now; one without a region where it is sold out everywhere."""
    kind, regions = row["instance_type"], [str(region["name"]) for region in row["regions_with_capacity_available"]]
    for region in regions or [""]:
        yield Offer(
            external_id=str(kind["name"]),
            instance_type=str(kind["name"]),
            region=region,
            tenancy=Tenancy.DEDICATED_GPU,
            price=hourly(kind),
            available=bool(regions),
            gpu_raw=gpu_raw(kind),
            gpu_model=gpu_model(kind),
            gpu_count=kind["specs"]["gpus"],
            gpu_memory_mib=gpu_memory_mib(kind),
            gpu_interconnect="nvlink" if " SXM" in str(kind["gpu_description"]) else "",
            vcpus=kind["specs"]["vcpus"],
            ram_mib=kind["specs"]["memory_gib"] * 1024,
            disk_gb=kind["specs"]["storage_gib"],
        )


def image_of(row: Row) -> ProviderImage:
    return ProviderImage(
        external_id=str(row["id"]),
        name=f"{row['name']} {row['version']}",
        created_at=moment(row.get("created_time")),
        region=str(row["region"]["name"]),
    )


def hourly(kind: Row) -> Money | None:
    """US cents for the whole machine."""
    cents = number(kind.get("price_cents_per_hour"))
    return Money(cents / 100, "USD") if cents else None


def gpu_raw(kind: Row) -> str:
    return str(kind["gpu_description"]) if kind["specs"]["gpus"] else ""


def gpu_model(kind: Row) -> str:
    raw, memory_mib = gpu_raw(kind), gpu_memory_mib(kind)
    parts = GPU.fullmatch(raw)
    return canonical(parts["chip"], memory_mib=memory_mib, form=(parts["form"] or "").lower()) if parts else raw


def gpu_memory_mib(kind: Row) -> int | None:
    parts = GPU.fullmatch(gpu_raw(kind))
    return int(parts["gb"]) * 1024 if parts else None


def order_of(spec: CreateSpec, token: str) -> Row:
    """The body of a launch, without its key. Raises Invalid for what Lambda does not rent."""
    on_demand(spec, LABEL)
    no_price_limit(spec, LABEL)
    own_disk(spec, LABEL)
    if not spec.region:
        raise Invalid(f"{LABEL} needs a region: take an offer that has one.")
    order: Row = {
        "region_name": spec.region,
        "instance_type_name": spec.offer_id,
        "name": f"{spec.name[: MAX_NAME_CHARS - len(token) - 1]} {token}",
        "tags": [{"key": TOKEN_TAG, "value": token}, *(tag_of(*label) for label in spec.labels.items())],
    }
    if spec.image_id:
        order["image"] = {"id" if IMAGE_ID.fullmatch(spec.image_id) else "family": spec.image_id}
    if spec.user_data:
        order["user_data"] = spec.user_data
    return order


def tag_of(key: str, value: str) -> dict[str, str]:
    """Keys begin with a letter and have small letters, digits, hyphens and colons."""
    plain = re.sub(r"[^a-z0-9:-]", "-", key.lower())
    named = plain if re.match(r"[a-z].", plain) else f"label-{plain}"
    return {"key": named[:MAX_TAG_KEY_CHARS], "value": value[:MAX_TAG_CHARS]}
