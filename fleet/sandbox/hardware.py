"""The GPUs of the sandbox: what NVML says of each model, at rest and at its limit."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """One model of GPU. `counts_activity`: GPM is there (Hopper and newer); `has_ecc`: its memory reports ECC errors."""

    name: str
    nvml_name: str
    memory_mib: int
    limit_watts: float
    idle_watts: float
    boost_mhz: int
    memory_mhz: int
    counts_activity: bool = False
    has_ecc: bool = True
    has_memory_sensor: bool = False
    has_nvlink: bool = False
    has_fan: bool = False
    # Full-board bandwidth in the one direction that carries the most.
    nvlink_bytes_per_second: float = 0.0
    reserved_mib: int = 500

    @property
    def memory_bytes(self) -> int:
        return self.memory_mib * MIB


# Memory as NVML totals it, limits and clocks: vendors' data sheets; what a card draws at rest varies, these are usual values.
MODELS = {
    model.name: model
    for model in (
        GpuModel(
            name="H100 SXM",
            nvml_name="NVIDIA H100 80GB HBM3",
            memory_mib=81559,
            limit_watts=700,
            idle_watts=71,
            boost_mhz=1980,
            memory_mhz=2619,
            counts_activity=True,
            has_memory_sensor=True,
            has_nvlink=True,
            nvlink_bytes_per_second=450e9,
        ),
        GpuModel(
            name="H200",
            nvml_name="NVIDIA H200",
            memory_mib=143771,
            limit_watts=700,
            idle_watts=76,
            boost_mhz=1980,
            memory_mhz=3201,
            counts_activity=True,
            has_memory_sensor=True,
            has_nvlink=True,
            nvlink_bytes_per_second=450e9,
        ),
        GpuModel(
            name="B200",
            nvml_name="NVIDIA B200",
            memory_mib=183359,
            limit_watts=1000,
            idle_watts=140,
            boost_mhz=1965,
            memory_mhz=3996,
            counts_activity=True,
            has_memory_sensor=True,
            has_nvlink=True,
            nvlink_bytes_per_second=900e9,
        ),
        GpuModel(
            name="A100 SXM 80 GB",
            nvml_name="NVIDIA A100-SXM4-80GB",
            memory_mib=81920,
            limit_watts=400,
            idle_watts=58,
            boost_mhz=1410,
            memory_mhz=1593,
            has_memory_sensor=True,
            has_nvlink=True,
            nvlink_bytes_per_second=300e9,
        ),
        GpuModel(
            name="A100 SXM 40 GB",
            nvml_name="NVIDIA A100-SXM4-40GB",
            memory_mib=40960,
            limit_watts=400,
            idle_watts=52,
            boost_mhz=1410,
            memory_mhz=1215,
            has_memory_sensor=True,
            has_nvlink=True,
            nvlink_bytes_per_second=300e9,
        ),
        GpuModel(
            name="A800 SXM 80 GB",
            nvml_name="NVIDIA A800-SXM4-80GB",
            memory_mib=81920,
            limit_watts=400,
            idle_watts=58,
            boost_mhz=1410,
            memory_mhz=1593,
            has_memory_sensor=True,
            has_nvlink=True,
            nvlink_bytes_per_second=200e9,
        ),
        GpuModel(
            name="L40S",
            nvml_name="NVIDIA L40S",
            memory_mib=46068,
            limit_watts=350,
            idle_watts=33,
            boost_mhz=2520,
            memory_mhz=9001,
        ),
        GpuModel(
            name="L4",
            nvml_name="NVIDIA L4",
            memory_mib=23034,
            limit_watts=72,
            idle_watts=12,
            boost_mhz=2040,
            memory_mhz=6251,
        ),
        GpuModel(
            name="A10G",
            nvml_name="NVIDIA A10G",
            memory_mib=23028,
            limit_watts=300,
            idle_watts=18,
            boost_mhz=1710,
            memory_mhz=6251,
        ),
        GpuModel(
            name="T4",
            nvml_name="Tesla T4",
            memory_mib=15360,
            limit_watts=70,
            idle_watts=10,
            boost_mhz=1590,
            memory_mhz=5001,
        ),
        GpuModel(
            name="RTX 4090",
            nvml_name="NVIDIA GeForce RTX 4090",
            memory_mib=24564,
            limit_watts=450,
            idle_watts=21,
            boost_mhz=2745,
            memory_mhz=10501,
            has_ecc=False,
            has_fan=True,
        ),
        GpuModel(
            name="RTX 3090",
            nvml_name="NVIDIA GeForce RTX 3090",
            memory_mib=24576,
            limit_watts=350,
            idle_watts=25,
            boost_mhz=1860,
            memory_mhz=9751,
            has_ecc=False,
            has_fan=True,
        ),
    )
}
