"""The GPUs of the sandbox: what NVML says of each model, at rest and at its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """One model of GPU. `counts_activity`: GPM is there (Hopper and newer); `has_ecc`: its memory reports ECC errors.

    `nvlink_bytes_per_second`: in one direction, all links together; 0 = it has none.
    """

    name: str
    nvml_name: str
    memory_mib: int
    idle_watts: float
    limit_watts: float
    boost_mhz: int
    memory_mhz: int
    nvlink_bytes_per_second: float = 0.0
    counts_activity: bool = False
    has_ecc: bool = True
    has_memory_sensor: bool = False
    has_fan: bool = False
    reserved_mib: int = 500

    @property
    def memory_bytes(self) -> int:
        return self.memory_mib * MIB


def model(
    name: str, nvml_name: str, memory_mib: int, watts: tuple[float, float], mhz: tuple[int, int], **more: Any
) -> GpuModel:
    """watts: at rest and at the limit; mhz: boost clock and memory clock."""
    return GpuModel(
        name=name, nvml_name=nvml_name, memory_mib=memory_mib,
        idle_watts=watts[0], limit_watts=watts[1], boost_mhz=mhz[0], memory_mhz=mhz[1], **more,
    )  # fmt: skip


def nvlink(gigabytes_per_second: float, **more: Any) -> dict[str, Any]:
    """What cards with NVLink have in common: high-bandwidth memory with a sensor."""
    return {"nvlink_bytes_per_second": gigabytes_per_second * 1e9, "has_memory_sensor": True, **more}


HOPPER = {"counts_activity": True}
GEFORCE = {"has_ecc": False, "has_fan": True}

# Memory as NVML totals it, limits and clocks: vendors' data sheets; what a card draws at rest varies, these are usual values.
MODELS = {
    entry.name: entry
    for entry in (
        model("B200", "NVIDIA B200", 183359, (140, 1000), (1965, 3996), **nvlink(900, **HOPPER)),
        model("H200", "NVIDIA H200", 143771, (76, 700), (1980, 3201), **nvlink(450, **HOPPER)),
        model("H100 SXM", "NVIDIA H100 80GB HBM3", 81559, (71, 700), (1980, 2619), **nvlink(450, **HOPPER)),
        model("A100 SXM 80 GB", "NVIDIA A100-SXM4-80GB", 81920, (58, 400), (1410, 1593), **nvlink(300)),
        model("A100 SXM 40 GB", "NVIDIA A100-SXM4-40GB", 40960, (52, 400), (1410, 1215), **nvlink(300)),
        model("A800 SXM 80 GB", "NVIDIA A800-SXM4-80GB", 81920, (58, 400), (1410, 1593), **nvlink(200)),
        model("L40S", "NVIDIA L40S", 46068, (33, 350), (2520, 9001)),
        model("L4", "NVIDIA L4", 23034, (12, 72), (2040, 6251)),
        model("A10G", "NVIDIA A10G", 23028, (18, 300), (1710, 6251)),
        model("T4", "Tesla T4", 15360, (10, 70), (1590, 5001)),
        model("RTX 4090", "NVIDIA GeForce RTX 4090", 24564, (21, 450), (2745, 10501), **GEFORCE),
        model("RTX 3090", "NVIDIA GeForce RTX 3090", 24576, (25, 350), (1860, 9751), **GEFORCE),
    )
}
