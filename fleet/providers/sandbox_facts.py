"""What the sandbox's rows mean: its words, and its JSON as values of the seam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
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
from fleet.providers.errors import Unavailable
from fleet.providers.gpus import canonical

STATES: Mapping[str, InstanceState] = {
    "provisioning": InstanceState.PROVISIONING,
    "starting": InstanceState.STARTING,
    "running": InstanceState.RUNNING,
    "stopping": InstanceState.STOPPING,
    "stopped": InstanceState.STOPPED,
    "reclaimed": InstanceState.STOPPED,
    "terminating": InstanceState.TERMINATING,
    "terminated": InstanceState.TERMINATED,
}
# What it says that it charges for.
CHARGED: Mapping[str, Billing] = {"full": Billing.FULL, "storage": Billing.STORAGE, "none": Billing.NONE}
MARKETS: Mapping[str, Market] = {
    "on_demand": Market.ON_DEMAND,
    "spot": Market.SPOT,
    "prepaid": Market.PREPAID,
}
TENANCIES: Mapping[str, Tenancy] = {
    "dedicated_host": Tenancy.DEDICATED_HOST,
    "dedicated_gpu": Tenancy.DEDICATED_GPU,
    "community_host": Tenancy.COMMUNITY_HOST,
    "fraction": Tenancy.FRACTION,
}
IMAGES: Mapping[str, ImageState] = {
    "ready": ImageState.READY,
    "pending": ImageState.PENDING,
    "failed": ImageState.FAILED,
}


def instance_of(row: dict[str, Any]) -> ProviderInstance:
    """Raises Unavailable for a row that is not what the API promises."""
    try:
        return _instance(row)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation) as error:
        raise Unavailable(
            f"The sandbox lists a machine in a form that is not its own ({type(error).__name__})."
        ) from error


def _instance(row: dict[str, Any]) -> ProviderInstance:
    gpu, image, raw = row["gpu"], row.get("image") or {}, str(row["status"])
    return ProviderInstance(
        ref=Ref(str(row["id"]), str(row["region"])),
        name=str(row["name"]),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=str(row.get("status_reason") or ""),
        billing=CHARGED.get(str(row.get("charged")), Billing.UNKNOWN),
        market=MARKETS.get(str(row.get("market")), Market.UNKNOWN),
        tenancy=TENANCIES.get(str(row.get("tenancy")), Tenancy.UNKNOWN),
        instance_type=str(row.get("type") or ""),
        gpu_raw=str(gpu["model"]),
        gpu_model=canonical(str(gpu["model"]), memory_mib=gpu.get("memory_mib")),
        gpu_count=gpu.get("count"),
        gpu_memory_mib=gpu.get("memory_mib"),
        host_share=None if row.get("host_share") is None else Decimal(row["host_share"]),
        vcpus=row.get("vcpus"),
        ram_mib=None if row.get("ram_gib") is None else int(row["ram_gib"]) * 1024,
        disk_gb=row.get("disk_gb"),
        rate=money(row, "price_per_hour"),
        storage_rate=money(row, "storage_price_per_hour"),
        ssh=addresses(row.get("ssh")),
        image_id=str(image.get("id", "")),
        image_name=str(image.get("name", "")),
        created_at=moment(row.get("created_at")),
        started_at=moment(row.get("started_at")),
        stopped_at=moment(row.get("stopped_at")),
        expires_at=moment(row.get("lease_ends_at")),
        labels={str(name): str(value) for name, value in (row.get("labels") or {}).items()},
    )


def image_of(row: dict[str, Any]) -> ProviderImage:
    try:
        state = IMAGES.get(str(row.get("status", "ready")), ImageState.UNKNOWN)
        return ProviderImage(str(row["id"]), str(row["name"]), moment(row.get("created_at")), state=state)
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(
            f"The sandbox lists an image in a form that is not its own ({type(error).__name__})."
        ) from error


def money(row: dict[str, Any], name: str) -> Money | None:
    value = row.get(name)
    return None if value is None else Money(Decimal(value), str(row["currency"]))


def addresses(ssh: dict[str, Any] | None) -> tuple[Ssh, ...]:
    return (Ssh(str(ssh["host"]), int(ssh["port"]), str(ssh["user"])),) if ssh else ()


def moment(word: str | None) -> datetime | None:
    """Raises ValueError for a time without a zone: guessing one would move bills."""
    if word is None:
        return None
    value = datetime.fromisoformat(word)
    if value.tzinfo is None:
        raise ValueError(word)
    return value


def offers_of(row: dict[str, Any]) -> Iterator[Offer]:
    """One for each region and market that it is sold in. Raises Unavailable as instance_of does."""
    try:
        prices = {Market.ON_DEMAND: row["price_per_hour"], Market.SPOT: row.get("spot_price_per_hour")}
        sold = [(region, market, price) for region in row["regions"] for market, price in prices.items() if price]
        yield from (offer_of(row, str(region), market, Decimal(price)) for region, market, price in sold)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation) as error:
        raise Unavailable(
            f"The sandbox lists an offer in a form that is not its own ({type(error).__name__})."
        ) from error


def offer_of(row: dict[str, Any], region: str, market: Market, price: Decimal) -> Offer:
    gpu, currency = row["gpu"], str(row["currency"])
    storage = row.get("storage_price_per_gb_month")
    return Offer(
        external_id=str(row["name"]),
        instance_type=str(row["name"]),
        region=region,
        market=market,
        tenancy=TENANCIES.get(str(row.get("tenancy")), Tenancy.UNKNOWN),
        price=Money(price, currency),
        storage_price_per_gb_month=None if storage is None else Money(Decimal(storage), currency),
        available=True,
        gpu_raw=str(gpu["model"]),
        gpu_model=canonical(str(gpu["model"]), memory_mib=gpu.get("memory_mib")),
        gpu_count=gpu.get("count"),
        gpu_memory_mib=gpu.get("memory_mib"),
        vcpus=row.get("vcpus"),
        ram_mib=int(row["ram_gib"]) * 1024,
    )
