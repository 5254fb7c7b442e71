"""What joins GPUs: NVLink out of the catalogue of GPUs, PCI Express with and without peer access, and networks between machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planner.catalogue.gpus import Gpu

Medium = Literal["nvlink", "pcie", "network"]


@dataclass(frozen=True, slots=True)
class Link:
    """`bandwidth`: bytes/s of one GPU in one direction as the makers print it; `efficiency`: the share that large collectives reach.

    `latency`: seconds of one step of a collective, start of the kernel included.
    """

    id: str
    medium: Medium
    bandwidth: float
    efficiency: float
    latency: float
    source: str

    @property
    def reached(self) -> float:
        return self.bandwidth * self.efficiency


@dataclass(frozen=True, slots=True)
class Network:
    """`inside` joins the `domain` GPUs of one NVLink domain or machine, `between` joins those, per GPU."""

    inside: Link
    between: Link
    domain: int = 8


# Gigabits/s of one port. Efficiency and latency: what nccl-tests reach with GPUDirect RDMA (InfiniBand, RoCE) and over TCP sockets (Ethernet).
_RDMA = "line rate of the standard; nccl-tests with GPUDirect RDMA reach 90 to 95 % of it, some 5 us a hop"
_TCP = "line rate of the standard; NCCL over TCP sockets reaches 60 to 80 % of it, some 30 us a hop"
_PORTS: Mapping[str, tuple[float, float, float, str]] = {
    "ethernet-10": (10, 0.8, 30e-6, _TCP),
    "ethernet-25": (25, 0.8, 30e-6, _TCP),
    "ethernet-100": (100, 0.7, 30e-6, _TCP),
    "roce-100": (100, 0.9, 6e-6, _RDMA),
    "roce-200": (200, 0.9, 6e-6, _RDMA),
    "roce-400": (400, 0.9, 6e-6, _RDMA),
    "infiniband-200": (200, 0.92, 5e-6, _RDMA),
    "infiniband-400": (400, 0.92, 5e-6, _RDMA),
    "infiniband-800": (800, 0.92, 5e-6, _RDMA),
}
NETWORKS = tuple(_PORTS)
# GB/s of 16 lanes in one direction, by generation, after the coding of the line: PCI-SIG.
_PCIE_GBS = {3: 15.75, 4: 31.5, 5: 63.0, 6: 121.0}
# NCCL between cards of one board reaches about 80 % of the lanes with peer access; without it every byte crosses the host's memory twice.
_PCIE_PEER, _PCIE_STAGED = 0.8, 0.4
_USUAL_PCIE_GENERATION = 4
# nccl-tests on HGX A100 and H100: 235 of 300 GB/s and 370 of 450 GB/s bus bandwidth of an all-reduce.
_NVLINK_EFFICIENCY = 0.8
_NVLINK_LATENCY, _PCIE_LATENCY = 4e-6, 10e-6


def nvlink(gpu: Gpu) -> Link | None:
    """None for a card without it."""
    if not gpu.nvlink_bandwidth:
        return None
    source = f"{gpu.source}: {gpu.nvlink_bandwidth / 1e9:g} GB/s both directions; nccl-tests reach 80 %"
    return Link(f"nvlink-{gpu.id}", "nvlink", gpu.nvlink_bandwidth / 2, _NVLINK_EFFICIENCY, _NVLINK_LATENCY, source)


def pcie(gpu: Gpu) -> Link:
    """Without peer access (GeForce) the data goes through the host's memory."""
    generation = gpu.pcie_generation or _USUAL_PCIE_GENERATION
    peer = "pcie" in gpu.peer.split(" ")[0] or gpu.peer == "nvlink"
    efficiency = _PCIE_PEER if peer else _PCIE_STAGED
    way = "peer access" if peer else "no peer access: through host memory"
    return Link(
        f"pcie-{generation}{'' if peer else '-staged'}",
        "pcie",
        _PCIE_GBS[generation] * 1e9,
        efficiency,
        _PCIE_LATENCY,
        f"PCI-SIG generation {generation}, 16 lanes; {way}",
    )


def network_port(name: str, *, ports_per_gpu: float = 1.0) -> Link:
    """`ports_per_gpu`: 1 on machines with a port for each GPU, 1/8 where eight GPUs share one. Raises KeyError for an unknown name."""
    gigabits, efficiency, latency, source = _PORTS[name]
    return Link(name, "network", gigabits * 1e9 / 8 * ports_per_gpu, efficiency, latency, source)


def usual_network(gpu: Gpu) -> Network:
    """What machines with this card usually have: NVLink inside and a fast port for each GPU, or PCI Express and one shared port."""
    if gpu.nvlink_bandwidth and not _is_bridge(gpu):
        port = "infiniband-200" if gpu.arch in {"Ampere", "Volta"} else "infiniband-400"
        return Network(nvlink(gpu) or pcie(gpu), network_port(port), nvlink_domain(gpu))
    return Network(pcie(gpu), network_port("ethernet-25", ports_per_gpu=1 / 8))


def network_for(gpu: Gpu, between: str | None) -> Network:
    """The usual network with `between` (one of NETWORKS) joining the machines; None leaves what is usual. Raises KeyError for an unknown name."""
    usual = usual_network(gpu)
    if between is None:
        return usual
    # Fast ports come one a GPU; a plain Ethernet port is shared by the machine.
    share = 1 / 8 if between.startswith("ethernet") else 1.0
    return replace(usual, between=network_port(between, ports_per_gpu=share))


def nvlink_domain(gpu: Gpu) -> int:
    """GPUs that NVLink joins: 72 in a GB200 or GB300 NVL72 rack, one on a GH200 (it joins the GPU to its CPU), else the eight of a board."""
    if gpu.form == "Superchip":
        return 72 if gpu.arch == "Blackwell" else 1
    return 8


def _is_bridge(gpu: Gpu) -> bool:
    return gpu.form == "PCIe"
