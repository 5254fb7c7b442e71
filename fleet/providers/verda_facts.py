"""From Verda's rows to our words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fleet.providers.base import (
    Billing,
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
from fleet.providers.reading import mib, whole
from fleet.providers.rows import Row, moment, price

STATES: Mapping[str, InstanceState] = {
    "ordered": InstanceState.PROVISIONING,
    "provisioning": InstanceState.PROVISIONING,
    "running": InstanceState.RUNNING,
    "offline": InstanceState.STOPPED,
    "starting_hibernation": InstanceState.STOPPING,
    "hibernating": InstanceState.STOPPED,
    "restoring": InstanceState.STARTING,
    "error": InstanceState.ERROR,
}
# Shut down is not given up: an offline machine is taken to cost its full price until it is deleted.
BILLINGS: Mapping[str, Billing] = {
    "ordered": Billing.UNKNOWN,
    "provisioning": Billing.FULL,
    "running": Billing.FULL,
    "offline": Billing.FULL,
    "starting_hibernation": Billing.FULL,
    "hibernating": Billing.STORAGE,
    "restoring": Billing.FULL,
    "error": Billing.UNKNOWN,
}
MARKETS: Mapping[str, Market] = {
    "PAY_AS_YOU_GO": Market.ON_DEMAND,
    "SPOT": Market.SPOT,
    "LONG_TERM": Market.RESERVED,
}
# "8H100.80S.176V": 8 GPUs of 80 GB, S for modules on NVLink.
TYPE = re.compile(r"^(?P<count>\d+)(?P<chip>[A-Z]+\d+[A-Za-z0-9]*)\.(?P<memory>\d+)?(?P<module>S)?")
COUNT, MEMORY = re.compile(r"^\d+x\s*"), re.compile(r"\s*\d+\s*GB$", re.IGNORECASE)


def instance_of(row: Row) -> ProviderInstance:
    raw, description = str(row["status"]), str(row.get("description") or "")
    return ProviderInstance(
        ref=Ref(str(row["id"]), location_of(row)),
        name=str(row.get("hostname") or ""),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        billing=BILLINGS.get(raw, Billing.UNKNOWN),
        market=market_of(row),
        tenancy=Tenancy.DEDICATED_GPU,
        instance_type=str(row.get("instance_type") or ""),
        **gpus_of(row),
        **sizes_of(row),
        rate=price(row.get("price_per_hour"), currency_of(row)),
        ssh=(Ssh(str(row["ip"])),) if row.get("ip") else (),
        image_name=str(row.get("image") or ""),
        image_id=str(row.get("image") or ""),
        created_at=moment(row.get("created_at")),
        labels=labels_of(description.split()) if client_token(description) else {"description": description},
        extra={"os_volume_id": str(row.get("os_volume_id") or ""), **client_token(description)},
    )


def location_of(row: Row) -> str:
    return str(row.get("location") or row.get("location_code") or "")


def currency_of(row: Row) -> str:
    return str(row.get("currency") or "usd").upper()


def market_of(row: Row) -> Market:
    if row.get("contract"):
        return MARKETS.get(str(row["contract"]), Market.UNKNOWN)
    spot = row.get("is_spot")
    return Market.UNKNOWN if spot is None else Market.SPOT if spot else Market.ON_DEMAND


def gpus_of(row: Row) -> dict[str, Any]:
    """The type's name tells chip, number and memory of one GPU; `gpu_memory` is that of all of them."""
    named = TYPE.match(str(row.get("instance_type") or ""))
    gpu = row.get("gpu") or {}
    count = gpu.get("number_of_gpus") if gpu.get("number_of_gpus") is not None else named and int(named["count"])
    if not count:
        return {"gpu_count": count}
    memory_mib = memory_of(row, count, named)
    raw = COUNT.sub("", str(gpu.get("description") or (named and named["chip"]) or ""))
    form = "sxm" if named and named["module"] else ""
    return {
        "gpu_raw": raw,
        "gpu_model": canonical(MEMORY.sub("", raw), memory_mib=memory_mib, form=form),
        "gpu_count": count,
        "gpu_memory_mib": memory_mib,
    }


def memory_of(row: Row, count: int, named: re.Match[str] | None) -> int | None:
    if named and named["memory"]:
        return mib(named["memory"])
    total = (row.get("gpu_memory") or {}).get("size_in_gigabytes")
    return None if not total else mib(total // count)


def sizes_of(row: Row) -> dict[str, Any]:
    return {
        "vcpus": whole((row.get("cpu") or {}).get("number_of_cores")),
        "ram_mib": mib((row.get("memory") or {}).get("size_in_gigabytes")),
    }


def image_of(row: Row) -> ProviderImage:
    return ProviderImage(external_id=str(row.get("image_type") or row["id"]), name=str(row["name"]))


def offers_of(kind: Row, market: Market, places: Iterable[str]) -> Iterator[Offer]:
    """One for each location that has the type free for this market; one without location where none has."""
    gpus, cost = gpus_of(kind), price_of(kind, market)
    if not gpus["gpu_count"]:
        return
    for place in sorted(places) or [""]:
        yield Offer(
            external_id=str(kind["instance_type"]),
            instance_type=str(kind["instance_type"]),
            region=place,
            market=market,
            tenancy=Tenancy.DEDICATED_GPU,
            price=cost,
            available=bool(place),
            gpu_interconnect="nvlink" if "nvlink" in str(kind.get("p2p") or "").lower() else "",
            disk_kind="nvme",
            **gpus,
            **sizes_of(kind),
        )


def price_of(kind: Row, market: Market) -> Money | None:
    names = ("spot_price", "spot_price_per_hour") if market is Market.SPOT else ("price_per_hour",)
    value = next((kind[name] for name in names if kind.get(name) is not None), None)
    return price(value, currency_of(kind))
