"""One name per GPU model, whatever NVML or a provider calls it. A name that nobody taught us stays as it is.

The names on the left of NAMES are ours; on the right stand normalised raw names: NVML's own, and those of providers' APIs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Words that say nothing of the model.
NOISE = re.compile(r"nvidia|tesla|geforce|amd|instinct|generation|edition|graphics|gpu|ada lovelace", re.IGNORECASE)
SEPARATORS = re.compile(r"[^a-z0-9]+")

NAMES: Mapping[str, tuple[str, ...]] = {
    "GB300": ("gb300",),
    "GB200": ("gb200",),
    "B300": ("b300", "b300sxm", "b300sxm6", "b300sxm6ac"),
    "B200": ("b200", "b200sxm", "b200sxm6", "b200180gb"),
    "GH200": ("gh200", "gh200480gb", "gh20096gb"),
    "H200": ("h200", "h200sxm", "h200sxm5", "h200sxm5141gb", "h200141gb", "h200141gbsxm5"),
    "H200 NVL": ("h200nvl",),
    "H100 SXM": ("h100sxm", "h100sxm5", "h10080gbhbm3", "h100sxm580gb", "h10080gbsxm5", "h100sxm80gb"),
    "H100 PCIe": ("h100pcie", "h100pcie80gb", "h10080gbpcie"),
    "H100 NVL": ("h100nvl", "h100nvl94gb"),
    "H800 SXM": ("h800", "h800sxm", "h800sxm5"),
    "H800 PCIe": ("h800pcie",),
    "H20": ("h20", "h2096gb"),
    "H20 141 GB": ("h203e", "h20141gb"),
    "A100 SXM 80 GB": ("a100sxm480gb", "a100sxm80gb", "a10080gbsxm4", "a10080gbsxm"),
    "A100 SXM 40 GB": ("a100sxm440gb", "a100sxm40gb", "a10040gbsxm4", "a10040gbsxm"),
    "A100 PCIe 80 GB": ("a10080gbpcie", "a100pcie80gb"),
    "A100 PCIe 40 GB": ("a100pcie40gb", "a10040gbpcie"),
    "A800 SXM 80 GB": ("a800sxm480gb", "a800sxm80gb"),
    "A800 PCIe 80 GB": ("a80080gbpcie", "a800pcie80gb"),
    "A800 PCIe 40 GB": ("a800pcie40gb",),
    "V100 SXM 32 GB": ("v100sxm232gb", "v100sxm32gb"),
    "V100 SXM 16 GB": ("v100sxm216gb", "v100sxm16gb"),
    "V100 PCIe 32 GB": ("v100pcie32gb",),
    "V100 PCIe 16 GB": ("v100pcie16gb",),
    "RTX PRO 6000 Workstation": ("rtxpro6000blackwellworkstation", "rtxpro6000ws"),
    "RTX PRO 6000 Server": ("rtxpro6000blackwellserver", "rtxpro6000se", "rtxpro6000s", "rtxproserver6000"),
    "RTX PRO 6000 Max-Q": ("rtxpro6000blackwellmaxqworkstation", "rtxpro6000blackwellmaxq"),
    "RTX 6000 Ada": ("rtx6000ada", "rtx6000ada48gb"),
    "RTX A6000": ("rtxa6000", "a6000"),
    "RTX A5000": ("rtxa5000", "a5000"),
    "RTX 5090": ("rtx5090", "5090"),
    "RTX 4090": ("rtx4090", "4090"),
    "RTX 4090 D": ("rtx4090d", "4090d"),
    "RTX 3090": ("rtx3090", "3090"),
    "RTX 3090 Ti": ("rtx3090ti", "3090ti"),
    "L40S": ("l40s", "l40s48gb"),
    "L40": ("l40",),
    "L20": ("l20",),
    "L4": ("l4", "l424gb"),
    "A40": ("a40",),
    "A30": ("a30",),
    "A16": ("a16",),
    "A10": ("a10",),
    "A10G": ("a10g", "a10g24gb"),
    "T4": ("t4",),
    "T4G": ("t4g",),
    "P40": ("p40",),
    "MI355X": ("mi355x",),
    "MI325X": ("mi325x",),
    "MI300X": ("mi300x",),
    "MI250X": ("mi250x",),
}
CANONICAL: Mapping[str, str] = {alias: name for name, aliases in NAMES.items() for alias in aliases}
# MiB as read or labelled, to the GB in a name: NVML and providers round differently.
MEMORY_GB = ((15_000, 17_000, 16), (30_000, 33_500, 32), (38_000, 41_500, 40), (78_000, 82_500, 80))


def canonical(raw: str, *, memory_mib: int | None = None, form: str = "") -> str:
    """Our name of a GPU, or `raw` itself.

    Providers that name only the chip ("A100") leave the form ("sxm", "pcie") and the memory, MiB of one GPU, to be told apart by.
    """
    key = normalised(raw)
    memory = f"{_memory_gb(memory_mib)}gb" if _memory_gb(memory_mib) else ""
    # The fullest description first: "a100" alone would be no model, "a100sxm40gb" is one.
    for candidate in (f"{key}{form}{memory}", f"{key}{form}", f"{key}{memory}", key):
        if candidate in CANONICAL:
            return CANONICAL[candidate]
    return raw


def normalised(raw: str) -> str:
    return SEPARATORS.sub("", NOISE.sub(" ", raw).lower())


def _memory_gb(memory_mib: int | None) -> int | None:
    if memory_mib is None:
        return None
    return next((label for low, high, label in MEMORY_GB if low <= memory_mib <= high), None)
