"""RunPod's pods in our words, and our orders in its."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from fleet.providers.base import (
    Billing,
    Capability,
    CreateSpec,
    InstanceState,
    Market,
    Money,
    ProviderInstance,
    ProviderUsage,
    Ref,
    Ssh,
    Tenancy,
)
from fleet.providers.errors import Invalid
from fleet.providers.gpus import canonical
from fleet.providers.orders import chosen_image, no_price_limit, on_demand
from fleet.providers.rows import HOURS_PER_MONTH, Row, moment, price

LABEL = "RunPod"
STATES: Mapping[str, InstanceState] = {
    "PROVISIONING": InstanceState.PROVISIONING,
    "STARTING": InstanceState.STARTING,
    "RUNNING": InstanceState.RUNNING,
    "EXITED": InstanceState.STOPPED,
    "ERROR": InstanceState.ERROR,
    "TERMINATED": InstanceState.TERMINATED,
}
BILLING: Mapping[str, Billing] = {
    "PROVISIONING": Billing.FULL,
    "STARTING": Billing.FULL,
    "RUNNING": Billing.FULL,
    "EXITED": Billing.STORAGE,
    # Not documented; the volume is there, so it is assumed to be billed.
    "ERROR": Billing.STORAGE,
    "TERMINATED": Billing.NONE,
}
TENANCIES: Mapping[str, Tenancy] = {"SECURE": Tenancy.DEDICATED_GPU, "COMMUNITY": Tenancy.COMMUNITY_HOST}
ACTIONS: Mapping[str, Capability] = {
    "start": Capability.START,
    "stop": Capability.STOP,
    "restart": Capability.REBOOT,
    "terminate": Capability.TERMINATE,
}
GOING = frozenset({"PROVISIONING", "STARTING", "RUNNING"})
STOPPED = frozenset({"EXITED"})
# US dollars for one GB a month, of the volume of a pod that does not run.
STOPPED_VOLUME_PRICE = Decimal("0.20")
# A template's id has neither; a reference to a container image has at least one.
REFERENCE_MARKS = ("/", ":")
# Official images start their SSH server and the rest in /start.sh, which a command of our own takes the place of.
FIRST_START = 'bash -c "echo $RACKRENT_FIRST_START | base64 -d | bash; if [ -x /start.sh ]; then exec /start.sh; fi; exec sleep infinity"'


def instance_of(pod: Row) -> ProviderInstance:
    raw, gpu, cpu = str(pod["status"]), pod.get("gpu") or {}, pod.get("cpu") or {}
    volume_gb = persistent_gb(pod)
    return ProviderInstance(
        ref=Ref(str(pod["id"])),
        name=str(pod["name"]),
        state=STATES.get(raw, InstanceState.UNKNOWN),
        raw_state=raw,
        billing=billing_of(raw, volume_gb),
        market=Market.ON_DEMAND,
        tenancy=TENANCIES.get(str(pod.get("cloud")), Tenancy.UNKNOWN),
        instance_type=type_of(gpu),
        gpu_raw=str(gpu.get("id") or ""),
        gpu_model=canonical(str(gpu.get("id") or "")),
        gpu_count=int(gpu.get("count", 1)) if gpu else 0,
        # Told of pods without GPUs alone.
        vcpus=cpu.get("vcpuCount"),
        ram_mib=cpu["memory"] * 1024 if cpu else None,
        disk_gb=int(pod.get("disk") or 0) + volume_gb or None,
        rate=price(pod.get("cost"), "USD"),
        storage_rate=Money(volume_gb * STOPPED_VOLUME_PRICE / HOURS_PER_MONTH, "USD"),
        ssh=addresses(pod.get("ssh") or {}),
        image_id=str(pod.get("template") or ""),
        image_name=str(pod.get("image") or ""),
        created_at=moment(pod.get("createdAt")),
        started_at=moment(pod.get("startedAt")),
        actions=actions_of(pod),
        usage=usage_of(pod),
        extra=extra_of(pod),
    )


def billing_of(raw: str, volume_gb: int) -> Billing:
    """A stopped pod without a volume of its own costs nothing: its container disk is free, a network volume is no part of it."""
    billing = BILLING.get(raw, Billing.UNKNOWN)
    return Billing.NONE if raw in STOPPED and not volume_gb else billing


def persistent_gb(pod: Row) -> int:
    return int(((pod.get("mounts") or {}).get("persistent") or {}).get("size") or 0)


def type_of(gpu: Row) -> str:
    return f"{gpu.get('count', 1)}x {gpu['id']}" if gpu else ""


def addresses(ssh: Row) -> tuple[Ssh, ...]:
    ways = (("direct", ssh.get("direct")), ("proxy", ssh.get("proxy")))
    return tuple(Ssh(str(way["host"]), int(way["port"]), str(way["username"]), kind) for kind, way in ways if way)


def actions_of(pod: Row) -> frozenset[Capability]:
    """Members of a cluster cannot be acted on alone; locked pods refuse to be stopped or restarted."""
    if pod.get("cluster"):
        return frozenset()
    offered = {act for word, act in ACTIONS.items() if word in (pod.get("actions") or ())}
    return frozenset(offered - ({Capability.STOP, Capability.REBOOT} if pod.get("locked") else set()))


def usage_of(pod: Row) -> ProviderUsage | None:
    runtime = pod.get("runtime")
    if not runtime:
        return None
    gpus = runtime.get("gpus") or ()
    return ProviderUsage(
        ref=Ref(str(pod["id"])),
        gpu_utilization_percent=tuple(float(gpu["util"]) for gpu in gpus if gpu.get("util") is not None),
        gpu_memory_percent=tuple(float(gpu["memoryUtil"]) for gpu in gpus if gpu.get("memoryUtil") is not None),
        cpu_percent=(runtime.get("cpu") or {}).get("util"),
        memory_percent=(runtime.get("memory") or {}).get("util"),
    )


def extra_of(pod: Row) -> dict[str, object]:
    """Never `env`: it holds passwords."""
    network = [mount["volumeId"] for mount in (pod.get("mounts") or {}).get("network") or ()]
    cluster = (pod.get("cluster") or {}).get("id")
    facts = {
        "cloud": pod.get("cloud"),
        "data_center": pod.get("dataCenterId"),
        "cuda_version": pod.get("cudaVersion"),
        "locked": pod.get("locked"),
        "network_volumes": network,
        "cluster": cluster,
    }
    return {name: value for name, value in facts.items() if value not in (None, [])}


def order_of(spec: CreateSpec, token: str) -> dict[str, Any]:
    """The body of POST /v2/pods. Raises Invalid for what RunPod does not rent."""
    on_demand(spec, LABEL)
    no_price_limit(spec, LABEL)
    cloud, count, gpu = split_offer(spec.offer_id)
    image = chosen_image(spec.image_id, LABEL)
    environment = {"PUBLIC_KEY": spec.ssh_public_key} if spec.ssh_public_key else {}
    body: dict[str, Any] = {
        "name": f"{spec.name} {token}",
        # Left out, it would be SECURE, whatever was chosen: the dearer one.
        "cloud": cloud,
        "gpu": {"id": gpu, "count": count},
        "ports": ["22/tcp"],
        "startSsh": True,
        ("image" if any(mark in image for mark in REFERENCE_MARKS) else "templateId"): image,
    }
    if spec.region:
        body["dataCenterIds"] = [spec.region]
    if spec.disk_gb:
        body["disk"] = spec.disk_gb
    if spec.user_data:
        environment["RACKRENT_FIRST_START"] = base64.b64encode(spec.user_data.encode()).decode()
        body["args"] = FIRST_START
    return body | ({"env": environment} if environment else {})


def split_offer(offer_id: str) -> tuple[str, int, str]:
    """Cloud, number of GPUs and RunPod's name of one, of an offer such as “SECURE:2:NVIDIA L40S”."""
    try:
        cloud, count, gpu = offer_id.split(":", 2)
        return cloud, int(count), gpu
    except ValueError:
        raise Invalid(f"{offer_id!r} is no offer of {LABEL}.") from None
