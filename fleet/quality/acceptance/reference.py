"""What a model of GPU should reach, by planner/data/gpus.csv (each row names its sources). Pure."""

from __future__ import annotations

from functools import cache

from fleet.providers.gpus import NAMES, canonical
from fleet.quality.acceptance.figures import Reference
from planner.catalogue.gpus import MIB, Gpu, gpus

# Every card of that file which has a generation of PCI Express has sixteen lanes; parts with fewer (A2, MXM) are not in it.
CARD_WIDTH = 16
# GB/s of one lane each way, after the line code (8b/10b to generation 2, 128b/130b to 5, FLIT in 6): PCI Express Base Specification.
LANE_BYTES_PER_SECOND = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}


def reference_of(model: str, *, memory_mib: int | None = None) -> Reference:
    """Empty for a model that is not known."""
    gpu = _cards().get(canonical(model, memory_mib=memory_mib))
    if gpu is None:
        return Reference()
    rates = {"bfloat16": gpu.bf16, "float16": gpu.fp16}
    return Reference(
        pcie_generation=gpu.pcie_generation,
        pcie_width=CARD_WIDTH if gpu.pcie_generation else None,
        matrix_flops_per_second={name: rate for name, rate in rates.items() if rate},
    )


def link_bytes_per_second(generation: float | None, width: float | None) -> float | None:
    """What a link can carry each way; None for one that is not known."""
    lane = LANE_BYTES_PER_SECOND.get(int(generation)) if generation else None
    return lane * width if lane and width else None


@cache
def _cards() -> dict[str, Gpu]:
    named = ((canonical(gpu.nvml_name, memory_mib=gpu.memory_bytes // MIB), gpu) for gpu in gpus().values())
    return {name: gpu for name, gpu in named if name in NAMES}
