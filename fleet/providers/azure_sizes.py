"""The GPUs of Azure's sizes, which the machines' rows do not tell: https://learn.microsoft.com/azure/virtual-machines/sizes/overview, November 2026."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.providers.base import Tenancy
from fleet.providers.gpus import canonical


@dataclass(frozen=True, slots=True)
class Gpus:
    """`raw` is Microsoft's word. `share` of one card where it is less than one."""

    raw: str
    count: int
    share: float = 1.0


A100_PCIE, A100_40, A100_80 = "A100 PCIe 80GB", "A100 SXM4 40GB", "A100 SXM4 80GB"
SIZES: Mapping[str, Gpus] = {
    "Standard_NC24ads_A100_v4": Gpus(A100_PCIE, 1),
    "Standard_NC48ads_A100_v4": Gpus(A100_PCIE, 2),
    "Standard_NC96ads_A100_v4": Gpus(A100_PCIE, 4),
    "Standard_NC40ads_H100_v5": Gpus("H100 NVL", 1),
    "Standard_NC80adis_H100_v5": Gpus("H100 NVL", 2),
    "Standard_ND96asr_v4": Gpus(A100_40, 8),
    "Standard_ND96amsr_A100_v4": Gpus(A100_80, 8),
    "Standard_ND96isr_H100_v5": Gpus("H100 SXM5", 8),
    "Standard_ND96isr_H200_v5": Gpus("H200", 8),
    "Standard_ND96isr_MI300X_v5": Gpus("MI300X", 8),
    "Standard_ND96is_MI300X_v5": Gpus("MI300X", 8),
    "Standard_ND128isr_NDR_GB200_v6": Gpus("GB200", 4),
    "Standard_ND40rs_v2": Gpus("V100 SXM2 32GB", 8),
    "Standard_NC6s_v3": Gpus("V100 PCIe 16GB", 1),
    "Standard_NC12s_v3": Gpus("V100 PCIe 16GB", 2),
    "Standard_NC24s_v3": Gpus("V100 PCIe 16GB", 4),
    "Standard_NC24rs_v3": Gpus("V100 PCIe 16GB", 4),
    "Standard_NC4as_T4_v3": Gpus("T4", 1),
    "Standard_NC8as_T4_v3": Gpus("T4", 1),
    "Standard_NC16as_T4_v3": Gpus("T4", 1),
    "Standard_NC64as_T4_v3": Gpus("T4", 4),
    "Standard_NV6ads_A10_v5": Gpus("A10", 1, 1 / 6),
    "Standard_NV12ads_A10_v5": Gpus("A10", 1, 1 / 3),
    "Standard_NV18ads_A10_v5": Gpus("A10", 1, 1 / 2),
    "Standard_NV36ads_A10_v5": Gpus("A10", 1),
    "Standard_NV36adms_A10_v5": Gpus("A10", 1),
    "Standard_NV72ads_A10_v5": Gpus("A10", 2),
}
BY_LOWER_NAME = {name.lower(): gpus for name, gpus in SIZES.items()}
NVLINK = ("standard_nd", "standard_nc80adis")


def known(size: str) -> Gpus | None:
    """Azure writes sizes in any case."""
    return BY_LOWER_NAME.get(size.lower())


def gpus_of(size: str) -> dict[str, Any]:
    """None for a size of the GPU families that is newer than the table; 0 for one of the others."""
    gpus = known(size)
    if gpus is None:
        return {"gpu_count": None if size.lower().startswith("standard_n") else 0}
    return {"gpu_raw": gpus.raw, "gpu_model": canonical(gpus.raw), "gpu_count": gpus.count}


def tenancy_of(size: str) -> Tenancy:
    gpus = known(size)
    return Tenancy.FRACTION if gpus and gpus.share < 1 else Tenancy.DEDICATED_GPU
