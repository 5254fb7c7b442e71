"""Vast.ai's asks as offers, and our orders as it takes them."""

from __future__ import annotations

import base64
import shlex
from decimal import Decimal

from fleet.providers.base import CreateSpec, Market, Money, Offer
from fleet.providers.errors import Invalid
from fleet.providers.gpus import canonical
from fleet.providers.orders import chosen_image, limit_on_spot
from fleet.providers.rows import Row, epoch, number, price
from fleet.providers.vast_rows import LABEL, ram_mib, tenancy_of

MAX_START_CHARS = 4048
DEFAULT_DISK_GB = 50


def offer_of(row: Row, market: Market) -> Offer:
    """`dph_total` is for the whole machine in either market: of bids, at the lowest that would win."""
    gpu, count, storage = str(row["gpu_name"]), int(row["num_gpus"]), number(row.get("storage_cost"))
    cores, disk_gb = row.get("cpu_cores_effective"), row.get("disk_space")
    return Offer(
        external_id=str(row["id"]),
        instance_type=f"{count}x {gpu}",
        region=str(row.get("geolocation") or ""),
        market=market,
        tenancy=tenancy_of(row),
        price=price(row.get("dph_total"), "USD"),
        storage_price_per_gb_month=None if storage is None else Money(storage, "USD"),
        available=row.get("rentable"),
        gpu_raw=gpu,
        gpu_model=canonical(gpu, memory_mib=row.get("gpu_ram")),
        gpu_count=count,
        gpu_memory_mib=row.get("gpu_ram"),
        gpu_interconnect=interconnect(row.get("bw_nvlink"), count),
        vcpus=int(cores) if cores else None,
        ram_mib=ram_mib(row),
        disk_gb=int(disk_gb) if disk_gb else None,
        disk_kind="nvme" if "nvme" in str(row.get("disk_name")).lower() else "",
        internet_down_mbps=row.get("inet_down"),
        internet_up_mbps=row.get("inet_up"),
        reliability=row.get("reliability2"),
        extra=extra_of(row),
    )


def interconnect(nvlink_gb_per_s: float | None, gpu_count: int) -> str:
    if nvlink_gb_per_s is None or gpu_count < 2:
        return ""
    return "nvlink" if nvlink_gb_per_s else "pcie"


def extra_of(row: Row) -> dict[str, object]:
    names = ("machine_id", "host_id", "hosting_type", "verification", "min_bid", "cuda_max_good", "driver_version")
    ends_at = epoch(row.get("end_date"))
    facts = {name: row[name] for name in names if row.get(name) is not None}
    return facts | ({"ends_at": ends_at.isoformat()} if ends_at else {})


def order_of(spec: CreateSpec, token: str) -> Row:
    """The body of an order. Raises Invalid for what Vast.ai would not take."""
    limit_on_spot(spec, LABEL)
    order: Row = {
        "image": chosen_image(spec.image_id, LABEL),
        "label": f"{spec.name} {token}",
        "disk": spec.disk_gb or DEFAULT_DISK_GB,
        "runtype": "ssh_direct",
        "target_state": "running",
        # Else a machine that cannot start is made all the same, stopped, and its disk is billed.
        "cancel_unavail": True,
    }
    if spec.market is Market.SPOT:
        order["price"] = float(bid_of(spec))
    start = start_script(spec)
    return order | ({"onstart": start} if start else {})


def bid_of(spec: CreateSpec) -> Decimal:
    if spec.max_price_per_hour is None:
        raise Invalid(f"A bid at {LABEL} needs the most that an hour of the machine may cost.")
    return spec.max_price_per_hour


def start_script(spec: CreateSpec) -> str:
    """Commands for the machine's first start: keys of the account are let in anyway, that of the order is added here."""
    lines = []
    if spec.ssh_public_key:
        lines.append(f"mkdir -p ~/.ssh && echo {shlex.quote(spec.ssh_public_key)} >> ~/.ssh/authorized_keys")
    if spec.user_data:
        lines.append(f"echo {base64.b64encode(spec.user_data.encode()).decode()} | base64 -d | bash")
    script = "\n".join(lines)
    if len(script) > MAX_START_CHARS:
        raise Invalid(f"The script is too long for {LABEL}: {len(script)} of {MAX_START_CHARS} characters, packed.")
    return script
