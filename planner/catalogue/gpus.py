"""GPUs: dense rates with FP32 accumulation, and the memory that the driver shows apart from the one on the label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from planner.catalogue.rows import Row, read_rows

GIB = 2**30
MIB = 2**20
# Where the driver's own total is not known: the share of the label that is there. From the rows where it was seen (0.93 for GDDR6 with ECC).
USUAL_SHARE_OF_LABEL = 0.985


@dataclass(frozen=True, slots=True)
class Gpu:
    """Rates in FLOP/s (INT8: OP/s), dense; bandwidths in bytes/s; None where the part does not have it or nobody says."""

    id: str
    name: str
    vendor: str
    arch: str
    # NVIDIA's, as (major, minor); None for other makers.
    compute_capability: tuple[int, int] | None
    form: str
    label_gib: float
    # What the driver shows, in bytes; `memory_is_measured` says whether that was read from a card or is the usual share of the label.
    memory_bytes: int
    memory_is_measured: bool
    memory_bandwidth: float | None
    fp32: float | None
    tf32: float | None
    bf16: float | None
    fp16: float | None
    fp8: float | None
    int8: float | None
    fp4: float | None
    # Both directions together, as the makers print it; None without NVLink.
    nvlink_bandwidth: float | None
    # What connects the cards of a machine, in words ("NVSwitch", "NVLink bridge (2 cards)", "PCIe").
    interconnect: str
    peer: str
    pcie_generation: int | None
    board_watts: float | None
    driver_branch_min: str
    nvml_name: str
    source: str
    note: str
    confidence: str

    @property
    def is_geforce(self) -> bool:
        return self.nvml_name.startswith("NVIDIA GeForce")

    def rate(self, dtype: str) -> float | None:
        """Dense matrix FLOP/s for a compute type; fp32 runs as TF32 where the part has it."""
        rates: Mapping[str, float | None] = {
            "bf16": self.bf16,
            "fp16": self.fp16,
            "fp8": self.fp8,
            "int8": self.int8,
            "fp4": self.fp4,
            "tf32": self.tf32,
            "fp32": self.fp32,
        }
        return rates[dtype]


@cache
def gpus() -> Mapping[str, Gpu]:
    """By id, in the order of the file. Raises CatalogueError for a wrong row."""
    return {gpu.id: gpu for gpu in map(_gpu, read_rows("gpus.csv"))}


def _tera(row: Row, column: str) -> float | None:
    number = row.number_or_none(column)
    return None if number is None else number * 1e12


def _giga(row: Row, column: str) -> float | None:
    number = row.number_or_none(column)
    return None if number is None else number * 1e9


def _capability(row: Row) -> tuple[int, int] | None:
    cell = row.optional_text("compute_capability")
    if not cell or row.text("vendor") != "NVIDIA":
        return None
    major, _, minor = cell.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise row.fault("compute_capability", "version like 9.0")
    return int(major), int(minor)


def _memory(row: Row) -> int:
    total = row.whole_or_none("nvml_total_mib")
    return total * MIB if total else int(row.number_of("memory_gib") * GIB * USUAL_SHARE_OF_LABEL)


def _gpu(row: Row) -> Gpu:
    return Gpu(
        id=row.text("id"),
        name=row.text("name"),
        vendor=row.text("vendor"),
        arch=row.text("arch"),
        compute_capability=_capability(row),
        form=row.text("form"),
        label_gib=row.number_of("memory_gib"),
        memory_bytes=_memory(row),
        memory_is_measured=row.optional_text("nvml_mib_basis").startswith("seen"),
        memory_bandwidth=_giga(row, "memory_bandwidth_GBs"),
        fp32=_tera(row, "fp32_tflops"),
        tf32=_tera(row, "tf32_dense_tflops"),
        bf16=_tera(row, "bf16_dense_tflops"),
        fp16=_tera(row, "fp16_dense_tflops"),
        fp8=_tera(row, "fp8_dense_tflops"),
        int8=_tera(row, "int8_dense_tops"),
        fp4=_tera(row, "fp4_dense_tflops"),
        nvlink_bandwidth=_giga(row, "nvlink_GBs_bidir"),
        interconnect=row.optional_text("interconnect"),
        peer=row.optional_text("p2p"),
        pcie_generation=row.whole_or_none("pcie_gen"),
        board_watts=row.number_or_none("tdp_w"),
        driver_branch_min=row.optional_text("min_driver_branch"),
        nvml_name=row.optional_text("nvml_name"),
        source=row.text("source"),
        note=row.optional_text("source_note"),
        confidence=row.text("confidence"),
    )
