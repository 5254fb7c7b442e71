"""Vast.ai's rows in our words. Four fields together say what a machine does: actual_status, intended_status, cur_state, next_state."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from fleet.providers.base import (
    Billing,
    InstanceState,
    Market,
    Money,
    ProviderInstance,
    ProviderUsage,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.gpus import canonical
from fleet.providers.rows import Row, epoch, number, price

LABEL = "Vast.ai"
# "null": no status yet.
STATES: Mapping[str, InstanceState] = {
    "null": InstanceState.PROVISIONING,
    "created": InstanceState.PROVISIONING,
    "loading": InstanceState.STARTING,
    "running": InstanceState.RUNNING,
    "rebooting": InstanceState.STARTING,
    "stopped": InstanceState.STOPPED,
    # Paused with its memory: it does nothing, and its GPUs are billed.
    "frozen": InstanceState.STOPPED,
    "exited": InstanceState.ERROR,
    "unknown": InstanceState.UNREACHABLE,
    "offline": InstanceState.UNREACHABLE,
}
BILLING: Mapping[str, Billing] = {
    "null": Billing.NONE,
    "created": Billing.NONE,
    "loading": Billing.NONE,
    "running": Billing.FULL,
    "rebooting": Billing.FULL,
    "stopped": Billing.STORAGE,
    "frozen": Billing.FULL,
    # Not documented: the container ended by itself, or the host is silent.
    "exited": Billing.UNKNOWN,
    "unknown": Billing.UNKNOWN,
    "offline": Billing.NONE,
}
WHOLE_HOST = Decimal(1)


def instance_of(row: Row) -> ProviderInstance:
    raw, gpu_memory = raw_state(row), row.get("gpu_ram")
    gpu, count = str(row.get("gpu_name") or ""), row.get("num_gpus")
    return ProviderInstance(
        ref=Ref(str(row["id"])),
        name=str(row.get("label") or f"{gpu} {row['id']}".strip()),
        state=state_of(row, raw),
        raw_state=raw,
        state_reason=reason_of(row, raw),
        billing=BILLING.get(raw, Billing.UNKNOWN),
        market=Market.SPOT if row.get("is_bid") else Market.ON_DEMAND,
        tenancy=tenancy_of(row),
        instance_type=f"{count}x {gpu}" if gpu else "",
        gpu_raw=gpu,
        gpu_model=canonical(gpu, memory_mib=gpu_memory),
        gpu_count=count,
        gpu_memory_mib=gpu_memory,
        host_share=number(row.get("gpu_frac")),
        vcpus=int(row["cpu_cores_effective"]) if row.get("cpu_cores_effective") else None,
        ram_mib=ram_mib(row),
        disk_gb=int(row["disk_space"]) if row.get("disk_space") else None,
        rate=price(row.get("dph_total"), "USD"),
        storage_rate=storage_rate(row, raw),
        ssh=addresses(row),
        image_name=str(row.get("image_uuid") or ""),
        started_at=epoch(row.get("start_date")),
        expires_at=epoch(row.get("end_date")),
        labels={"label": str(row["label"])} if row.get("label") else {},
        usage=usage_of(row),
        extra=extra_of(row),
    )


def raw_state(row: Row) -> str:
    """The actual status; a machine that was stopped often shows its container's end instead, which is told apart by what was wanted."""
    actual = row.get("actual_status") or "null"
    wanted = {row.get("intended_status"), row.get("cur_state")}
    return "stopped" if actual == "exited" and wanted == {"stopped"} else str(actual)


def state_of(row: Row, raw: str) -> InstanceState:
    state, following = STATES.get(raw, InstanceState.UNKNOWN), row.get("next_state")
    if state is InstanceState.RUNNING and following == "stopped":
        return InstanceState.STOPPING
    # Waiting for its GPUs, perhaps for ever: somebody else has them.
    if raw == "stopped" and following == "running":
        return InstanceState.STARTING
    return state


def reason_of(row: Row, raw: str) -> str:
    """An outbid machine looks like one that its renter stopped: only the bids tell."""
    bid, minimum = number(row.get("dph_base")), number(row.get("min_bid"))
    if row.get("is_bid") and raw == "stopped" and bid is not None and minimum is not None and minimum > bid:
        return f"Outbid: the lowest bid is now {minimum} USD an hour, this one is {bid}."
    return str(row.get("status_msg") or "").strip()


def tenancy_of(row: Row) -> Tenancy:
    """A rented part of a host is shared with whom the host likes; which hosts stand in a data centre, rows do not say for certain."""
    share = number(row.get("gpu_frac"))
    if share is None:
        return Tenancy.UNKNOWN
    return Tenancy.DEDICATED_HOST if share >= WHOLE_HOST else Tenancy.COMMUNITY_HOST


def ram_mib(row: Row) -> int | None:
    """`cpu_ram` is the host's; a renter gets the share that goes with the cores."""
    ram, mine, all_cores = row.get("cpu_ram"), row.get("cpu_cores_effective"), row.get("cpu_cores")
    if not ram:
        return None
    return int(ram * min(mine / all_cores, 1)) if mine and all_cores else int(ram)


def storage_rate(row: Row, raw: str) -> Money | None:
    """What the disk costs an hour: of a stopped machine as it is billed now, else as it would be."""
    now = (row.get("instance") or {}).get("totalHour") if raw == "stopped" else None
    return price(now, "USD") or price(row.get("storage_total_cost"), "USD")


def addresses(row: Row) -> tuple[Ssh, ...]:
    """Straight to the published port, and by Vast.ai's proxy."""
    found = []
    host, published = str(row.get("public_ipaddr") or "").strip(), (row.get("ports") or {}).get("22/tcp")
    if host and published:
        found.append(Ssh(host, int(published[0]["HostPort"])))
    if row.get("ssh_host") and row.get("ssh_port"):
        found.append(Ssh(str(row["ssh_host"]), int(row["ssh_port"]), kind="proxy"))
    return tuple(found)


def usage_of(row: Row) -> ProviderUsage | None:
    """One figure for all GPUs together; memory in use and its limit come in the same unit, whichever it is."""
    if row.get("gpu_util") is None:
        return None
    limit, used = row.get("mem_limit"), row.get("mem_usage")
    return ProviderUsage(
        ref=Ref(str(row["id"])),
        gpu_utilization_percent=(float(row["gpu_util"]),),
        memory_percent=100 * used / limit if limit and used is not None else None,
    )


def extra_of(row: Row) -> dict[str, object]:
    """Never the environment, the start script or the Jupyter token: they hold secrets."""
    names = ("machine_id", "host_id", "hosting_type", "verification", "reliability2", "geolocation", "intended_status")
    return {name: row[name] for name in names if row.get(name) is not None}
