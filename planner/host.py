"""The rest of the machine: processors, memory, disks, network, tenancy and place, as a minimum and a recommendation, each with its reason.

Sizes in bytes, bandwidths in bytes per second, unless a name says otherwise. Rules of thumb say so in their reason; the others are computed
from the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planner.catalogue.gpus import GIB
from planner.reasons import Reason, reason

Unit = Literal["vcpus", "bytes", "iops", "bytes_per_second", "bits_per_second", "word"]

# One process per GPU and its loaders: PyTorch's loader wants two to four workers, tokenizing on the fly twice that.
VCPUS_PER_GPU = (4, 8)
VCPUS_PER_GPU_WHEN_TOKENIZING = (8, 16)
# The framework's own pages in each process (CUDA context on the host, pinned buffers, Python), and what the system keeps.
HOST_BYTES_PER_PROCESS = 6 * GIB
SYSTEM_MEMORY_BYTES = 8 * GIB
# A CUDA image unpacked and one environment of PyTorch: 20 to 30 GB; logs and caches beside them.
SYSTEM_DISK_BYTES = (50 * GIB, 100 * GIB)
# Sequential reads come in pieces of this size; a plain network disk gives at least one operation for each.
READ_SIZE = 256 * 1024
# A checkpoint that stops the run may take this share of the time between two.
CHECKPOINT_SHARE = (0.05, 0.01)
# Weights are read once at each start: how long a start may take.
LOAD_SECONDS = (300.0, 60.0)
# Share of a step in which gradients may still be on their way when the backward pass is over.
EXPOSED_SHARE = (0.5, 0.1)
# Downloads: what a start may wait for the weights.
DOWNLOAD_SECONDS = (3600.0, 600.0)
TYPICAL_LINKS_BITS = (100e6, 1e9, 10e9)


@dataclass(frozen=True, slots=True)
class HostLoad:
    """What the run asks of a node. `step_seconds` is None for serving; `offloaded` is what lies in host memory instead of on the GPUs."""

    gpus_per_node: int
    nodes: int
    weights: float
    # All that a checkpoint holds; 0 for serving.
    checkpoint: float
    kept_checkpoints: int
    checkpoint_interval_seconds: float
    dataset: float
    # Bytes of training data that one node reads a second.
    read_rate: float
    # Bytes that cross a node's network in one step.
    network_per_step: float
    step_seconds: float | None
    offloaded: float
    tokenizes_while_training: bool = False
    serves_people: bool = False
    personal_data: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """One line of the shopping list; both figures in `unit`, words where that is "word"."""

    key: str
    unit: Unit
    minimum: float | str
    recommended: float | str
    why: Reason


def host_needs(load: HostLoad) -> tuple[Need, ...]:
    """Per node, in the order in which offers list them."""
    return (
        _vcpus(load),
        _memory(load),
        _system_disk(),
        _data_disk(load),
        _disk_bandwidth(load),
        _iops(load),
        *_node_network(load),
        _internet(load),
        _tenancy(load),
        _region(load),
    )


def download_seconds(weights: float) -> dict[float, float]:
    """How long the weights take over usual links: bits per second -> seconds, at nine tenths of the line."""
    return {bits: weights * 8 / (bits * 0.9) for bits in TYPICAL_LINKS_BITS}


def _vcpus(load: HostLoad) -> Need:
    low, high = VCPUS_PER_GPU_WHEN_TOKENIZING if load.tokenizes_while_training else VCPUS_PER_GPU
    key = "host.vcpus.tokenizing" if load.tokenizes_while_training else "host.vcpus"
    return Need("vcpus", "vcpus", low * load.gpus_per_node, high * load.gpus_per_node, reason(key, per_gpu=low))


def _memory(load: HostLoad) -> Need:
    processes = load.gpus_per_node * HOST_BYTES_PER_PROCESS
    # Shards are read one after the other, but a start without that (or an export) holds the weights once.
    least = SYSTEM_MEMORY_BYTES + processes + load.weights + load.offloaded
    # The page cache keeps the weights between two starts, and pinned copies of what is offloaded want as much again.
    good = SYSTEM_MEMORY_BYTES + processes + 2 * load.weights + 1.5 * load.offloaded
    key = "host.memory.offload" if load.offloaded else "host.memory"
    why = reason(key, weights_gib=_gib(load.weights), offloaded_gib=_gib(load.offloaded))
    return Need("memory", "bytes", _up(least), _up(good), why)


def _system_disk() -> Need:
    return Need("system_disk", "bytes", *SYSTEM_DISK_BYTES, reason("host.system_disk"))


def _data_disk(load: HostLoad) -> Need:
    # One checkpoint more than is kept: the old one goes only when the new one is whole.
    checkpoints = (load.kept_checkpoints + 1) * load.checkpoint if load.checkpoint else 0
    least = load.weights + load.dataset + checkpoints
    export = load.weights if load.checkpoint else 0
    why = reason(
        "host.data_disk" if load.checkpoint else "host.data_disk.serving",
        weights_gib=_gib(load.weights),
        dataset_gib=_gib(load.dataset),
        checkpoint_gib=_gib(load.checkpoint),
        kept=load.kept_checkpoints,
    )
    return Need("data_disk", "bytes", _up(1.1 * least), _up(1.5 * (least + export)), why)


def _disk_bandwidth(load: HostLoad) -> Need:
    def rate(load_seconds: float, share: float) -> float:
        written = load.checkpoint / load.nodes / (load.checkpoint_interval_seconds * share) if load.checkpoint else 0
        return max(load.weights / load_seconds, written, load.read_rate)

    least, good = (rate(*limits) for limits in zip(LOAD_SECONDS, CHECKPOINT_SHARE, strict=True))
    why = reason(
        "host.disk_bandwidth" if load.checkpoint else "host.disk_bandwidth.serving",
        load_minutes=round(LOAD_SECONDS[0] / 60),
        checkpoint_gib=_gib(load.checkpoint / load.nodes),
        interval_minutes=round(load.checkpoint_interval_seconds / 60),
    )
    return Need("disk_bandwidth", "bytes_per_second", least, good, why)


def _iops(load: HostLoad) -> Need:
    need = _disk_bandwidth(load)
    least, good = (math.ceil(float(rate) / READ_SIZE) for rate in (need.minimum, need.recommended))
    # Many small files (an environment, a data set of samples) are what an ordinary 3,000 IOPS disk is asked for.
    return Need("iops", "iops", max(least, 1000), max(good, 3000), reason("host.iops", piece_kib=READ_SIZE // 1024))


def _node_network(load: HostLoad) -> Iterator[Need]:
    if load.nodes == 1 or not load.step_seconds:
        return
    least, good = (8 * load.network_per_step / (load.step_seconds * share) for share in EXPOSED_SHARE)
    why = reason(
        "host.node_network", gib_per_step=_gib(load.network_per_step), step_seconds=round(load.step_seconds, 2)
    )
    yield Need("node_network", "bits_per_second", least, good, why)


def _internet(load: HostLoad) -> Need:
    least, good = (8 * load.weights / seconds for seconds in DOWNLOAD_SECONDS)
    minutes = round(download_seconds(load.weights)[1e9] / 60, 1)
    why = reason("host.internet", weights_gib=_gib(load.weights), minutes_at_1_gbit=minutes)
    return Need("internet", "bits_per_second", least, good, why)


def _tenancy(load: HostLoad) -> Need:
    if load.gpus_per_node * load.nodes > 1:
        return Need("tenancy", "word", "exclusive", "exclusive", reason("host.tenancy.in_step"))
    if load.serves_people:
        return Need("tenancy", "word", "shared", "exclusive", reason("host.tenancy.latency"))
    return Need("tenancy", "word", "shared", "shared", reason("host.tenancy.shared"))


def _region(load: HostLoad) -> Need:
    if load.personal_data:
        return Need("region", "word", "same_law", "same_region", reason("host.region.personal_data"))
    if load.serves_people:
        return Need("region", "word", "any", "near_users", reason("host.region.users"))
    return Need("region", "word", "any", "same_region", reason("host.region.data"))


def _up(size: float) -> float:
    """To whole GiB: nobody rents parts of one."""
    return float(math.ceil(size / GIB) * GIB)


def _gib(size: float) -> float:
    return round(size / GIB, 1)
