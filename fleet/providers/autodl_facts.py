"""From AutoDL's rows to our words. Pure.

A machine stands in two answers: the list has its state, a snapshot its price, address and use. The snapshot also carries the root
password and Jupyter's token, which are left where they are. Money is in thousandths of a yuan.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from fleet.providers.base import (
    Billing,
    CreateSpec,
    ImageState,
    InstanceState,
    Market,
    Money,
    ProviderImage,
    ProviderInstance,
    ProviderUsage,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.errors import Invalid
from fleet.providers.gpus import canonical
from fleet.providers.orders import chosen_image, client_token, name_with_token, no_price_limit, on_demand
from fleet.providers.rows import Row, moment, number

LABEL = "AutoDL"
STATES: Mapping[str, InstanceState] = {
    "creating": InstanceState.PROVISIONING,
    "created": InstanceState.PROVISIONING,
    "starting": InstanceState.STARTING,
    "running": InstanceState.RUNNING,
    "shutting_down": InstanceState.STOPPING,
    "shutdown": InstanceState.STOPPED,
    "abnormal": InstanceState.ERROR,
}
BILLINGS: Mapping[str, Billing] = {
    "creating": Billing.NONE,
    "starting": Billing.FULL,
    "running": Billing.FULL,
    "shutting_down": Billing.FULL,
    "shutdown": Billing.STORAGE,
}
MARKETS: Mapping[str, Market] = {
    "payg": Market.ON_DEMAND,
    "daily": Market.PREPAID,
    "weekly": Market.PREPAID,
    "monthly": Market.PREPAID,
    "yearly": Market.PREPAID,
}
IMAGE_STATES: Mapping[str, ImageState] = {
    "creating": ImageState.PENDING,
    "saving": ImageState.PENDING,
    "finished": ImageState.READY,
    "failed": ImageState.FAILED,
}
# What AutoDL calls cards where a snapshot does not name them.
CARDS = {"v-48g": "RTX 4090 48 GB"}
THOUSANDTHS, BYTES_PER_MIB, BYTES_PER_GB = Decimal(1000), 2**20, 10**9
# Powered on without its GPUs, a machine costs this an hour, whatever it is.
WITHOUT_GPU = Money(Decimal("0.1"), "CNY")
# The oldest CUDA asked of a host's driver, in the API's way: 118 is 11.8. The image brings its own CUDA.
CUDA_FROM = 118
MOST_GPUS = 4


def yuan(thousandths: Any) -> Decimal | None:
    read = number(thousandths)
    return None if read is None else read / THOUSANDTHS


def instance_of(row: Row, snapshot: Row) -> ProviderInstance:
    raw, ref = str(row["status"]), Ref(str(row["uuid"]), str(row.get("region_sign") or ""))
    market = MARKETS.get(str(row.get("charge_type")), Market.UNKNOWN)
    return ProviderInstance(
        ref=ref,
        name=str(row.get("name") or ""),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        state_reason=str(row.get("sub_status") or ""),
        billing=billing_of(raw, market),
        market=market,
        tenancy=Tenancy.DEDICATED_GPU,
        instance_type=str(row.get("gpu_spec_uuid") or ""),
        **gpus_of(row, snapshot),
        **sizes_of(snapshot),
        rate=rate_of(row, snapshot),
        ssh=addresses_of(snapshot),
        created_at=moment(row.get("created_at")),
        started_at=time_of(row.get("started_at")),
        stopped_at=time_of(row.get("stopped_at")) if raw == "shutdown" else None,
        expires_at=time_of(row.get("expired_at")),
        usage=usage_of(ref, snapshot),
        extra={
            "machine_id": str(row.get("machine_id") or ""),
            "start_mode": str(row.get("start_mode") or ""),
            **client_token(row.get("name")),
        },
    )


def billing_of(raw: str, market: Market) -> Billing:
    """A term that is paid ahead is paid whether the machine is on or off."""
    billing = BILLINGS.get(raw, Billing.UNKNOWN)
    return Billing.FULL if market is Market.PREPAID and billing is Billing.STORAGE else billing


def gpus_of(row: Row, snapshot: Row) -> dict[str, Any]:
    spec = str(row.get("gpu_spec_uuid") or "")
    raw = str(snapshot.get("snapshot_gpu_alias_name") or CARDS.get(spec, spec))
    return {"gpu_raw": raw, "gpu_model": canonical(raw), "gpu_count": row.get("req_gpu_amount")}


def sizes_of(snapshot: Row) -> dict[str, Any]:
    used = snapshot.get("usage_info") or {}
    memory = used.get("mem_limit")
    disks = [used[name] for name in ("root_fs_total_size", "data_disk_total_size") if used.get(name)]
    return {
        "ram_mib": memory // BYTES_PER_MIB if memory else None,
        "disk_gb": sum(disks) // BYTES_PER_GB if disks else None,
    }


def rate_of(row: Row, snapshot: Row) -> Money | None:
    """Of the machine with all of its GPUs, as a snapshot tells it."""
    if row.get("start_mode") not in {None, "", "gpu"}:
        return WITHOUT_GPU
    amount = yuan(snapshot.get("payg_price"))
    return Money(amount, "CNY") if amount else None


def addresses_of(snapshot: Row) -> tuple[Ssh, ...]:
    host, port = snapshot.get("proxy_host"), snapshot.get("ssh_port")
    return (Ssh(str(host), int(port), kind="proxy"),) if host and port else ()


def time_of(value: Row | None) -> datetime | None:
    """{"Time": …, "Valid": …}"""
    return moment(value["Time"]) if value and value.get("Valid") else None


def usage_of(ref: Ref, snapshot: Row) -> ProviderUsage | None:
    """Of processor and memory. AutoDL measures no GPU outside the machine."""
    used = snapshot.get("usage_info") or {}
    cpu, memory = used.get("cpu_usage_percent"), used.get("mem_usage_percent")
    return None if cpu is None and memory is None else ProviderUsage(ref=ref, cpu_percent=cpu, memory_percent=memory)


def image_of(row: Row) -> ProviderImage:
    size = row.get("image_size")
    return ProviderImage(
        external_id=str(row["image_uuid"]),
        name=str(row.get("name") or row.get("image_name") or ""),
        created_at=moment(row.get("created_at")),
        state=IMAGE_STATES.get(str(row.get("status")), ImageState.UNKNOWN),
        size_gb=Decimal(size) / BYTES_PER_GB if size else None,
    )


def order_of(spec: CreateSpec, token: str) -> Row:
    """The token stands in the name: machines have no labels here. Raises Invalid."""
    if not 1 <= spec.gpu_count <= MOST_GPUS:
        raise Invalid(f"{LABEL} rents 1 to {MOST_GPUS} GPUs in one machine.")
    on_demand(spec, LABEL)
    no_price_limit(spec, LABEL)
    order: Row = {
        "req_gpu_amount": spec.gpu_count,
        "expand_system_disk_by_gb": spec.disk_gb or 0,
        "gpu_spec_uuid": spec.offer_id,
        "image_uuid": chosen_image(spec.image_id, LABEL),
        "cuda_v_from": CUDA_FROM,
        "instance_name": name_with_token(spec.name, token),
    }
    if spec.region:
        order["data_center_list"] = [spec.region]
    if commands := start_command(spec):
        order["start_command"] = commands
    return order


def start_command(spec: CreateSpec) -> str:
    """The API takes no key and no script, but a command to run at the first start: both go through it."""
    steps = []
    if spec.ssh_public_key:
        key = shlex.quote(re.sub(r"\s+", " ", spec.ssh_public_key.strip()))
        steps.append(f"mkdir -p ~/.ssh && printf '%s\\n' {key} >> ~/.ssh/authorized_keys && chmod -R go= ~/.ssh")
    if spec.user_data:
        steps.append(f"bash -c {shlex.quote(spec.user_data)}")
    return "; ".join(steps)
