"""What Prometheus reads: DCGM's names for GPUs, node_exporter's for the host, our own for ourselves.

Names, types and units are those of dcgm-exporter's default-counters.csv and of node_exporter's collectors, traps included: frame
buffer in MiB, energy in mJ, activity as a ratio, PCIe as a gauge in bytes per second. What was not read is no series, never a zero.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Labels = dict[str, str]
    Series = tuple[Labels, float]

_MIB = 1 << 20
_GAUGE, _COUNTER = "gauge", "counter"
# name: (type, field of a GPU sample, factor from the field's unit, help)
DCGM: dict[str, tuple[str, str, float, str]] = {
    "DCGM_FI_DEV_SM_CLOCK": (_GAUGE, "sm_clock_mhz", 1, "SM clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEM_CLOCK": (_GAUGE, "memory_clock_mhz", 1, "Memory clock frequency (in MHz)."),
    "DCGM_FI_DEV_GPU_TEMP": (_GAUGE, "temperature_celsius", 1, "GPU temperature (in C)."),
    "DCGM_FI_DEV_MEMORY_TEMP": (_GAUGE, "memory_temperature_celsius", 1, "Memory temperature (in C)."),
    "DCGM_FI_DEV_POWER_USAGE": (_GAUGE, "power_watts", 1, "Power draw (in W)."),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (
        _COUNTER,
        "energy_joules",
        1000,
        "Energy since the driver was loaded (in mJ).",
    ),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": (_COUNTER, "pcie_replays", 1, "PCIe retries."),
    "DCGM_FI_DEV_GPU_UTIL": (_GAUGE, "utilization_percent", 1, "GPU utilization (in %)."),
    "DCGM_FI_DEV_MEM_COPY_UTIL": (_GAUGE, "memory_utilization_percent", 1, "Memory bandwidth utilization (in %)."),
    "DCGM_FI_DEV_ENC_UTIL": (_GAUGE, "encoder_percent", 1, "Encoder utilization (in %)."),
    "DCGM_FI_DEV_DEC_UTIL": (_GAUGE, "decoder_percent", 1, "Decoder utilization (in %)."),
    "DCGM_FI_DEV_FB_USED": (_GAUGE, "memory_used_bytes", 1 / _MIB, "Frame buffer memory used (in MiB)."),
    "DCGM_FI_DEV_FB_RESERVED": (_GAUGE, "memory_reserved_bytes", 1 / _MIB, "Frame buffer memory reserved (in MiB)."),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": (
        _COUNTER,
        "ecc_corrected",
        1,
        "Single-bit ECC errors since the driver was loaded.",
    ),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": (
        _COUNTER,
        "ecc_uncorrected",
        1,
        "Double-bit ECC errors since the driver was loaded.",
    ),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": (
        _COUNTER,
        "remapped_rows_corrected",
        1,
        "Rows remapped for correctable errors.",
    ),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (
        _COUNTER,
        "remapped_rows_uncorrected",
        1,
        "Rows remapped for uncorrectable errors.",
    ),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": (_GAUGE, "remapped_rows_failed", 1, "Whether remapping of rows has failed."),
    "DCGM_FI_PROF_SM_ACTIVE": (_GAUGE, "sm_activity", 1, "Ratio of time with at least one warp on an SM."),
    "DCGM_FI_PROF_SM_OCCUPANCY": (_GAUGE, "sm_occupancy", 1, "Ratio of resident warps to the most possible."),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (_GAUGE, "tensor_activity", 1, "Ratio of cycles the tensor pipe was active."),
    "DCGM_FI_PROF_DRAM_ACTIVE": (_GAUGE, "dram_activity", 1, "Ratio of cycles the memory interface was active."),
}
# Only from the activity counters: a PCIe figure of another source is no profiling metric
_PROFILED_PCIE: dict[str, tuple[str, str, float, str]] = {
    "DCGM_FI_PROF_PCIE_TX_BYTES": (_GAUGE, "pcie_tx_bytes_per_second", 1, "Bytes sent over PCIe (per second)."),
    "DCGM_FI_PROF_PCIE_RX_BYTES": (_GAUGE, "pcie_rx_bytes_per_second", 1, "Bytes received over PCIe (per second)."),
}


class Page:
    """Families of series in the text format, each with one HELP and TYPE."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, kind: str, description: str, series: Iterable[Series]) -> None:
        """A family without series is left out."""
        rows = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in series]
        if rows:
            self._lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}", *rows]

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def add_gpus(page: Page, gpus: list[dict[str, object]], inventory: list[dict[str, object]], host_label: Labels) -> None:
    """One series for each GPU and MIG instance that has the value; a lost GPU has none."""
    labels = gpu_labels(inventory, host_label)
    known = [(labels[str(gpu["uuid"])], gpu) for gpu in gpus if str(gpu.get("uuid")) in labels]
    profiled = [(place, gpu) for place, gpu in known if "sm_activity" in gpu]
    for families, rows in ((DCGM, known), (_PROFILED_PCIE, profiled)):
        for name, (kind, field, factor, description) in families.items():
            page.add(name, kind, description, _series(rows, field, factor))
    page.add("DCGM_FI_DEV_FB_FREE", _GAUGE, "Frame buffer memory free (in MiB).", _free_memory(known))


def gpu_labels(inventory: list[dict[str, object]], host_label: Labels) -> dict[str, Labels]:
    """By UUID. As in dcgm-exporter a MIG instance carries its parent's UUID, told apart by GPU_I_ID and GPU_I_PROFILE."""
    buses = {str(row["uuid"]): str(row.get("pci_bus_id", "")) for row in inventory}
    labels = {}
    for row in inventory:
        parent = str(row.get("mig_parent") or row["uuid"])
        index = str(row.get("index", ""))
        one = {"gpu": index, "UUID": parent, "pci_bus_id": buses.get(parent, ""), "device": f"nvidia{index}"}
        one["modelName"] = str(row.get("name", ""))
        if row.get("mig_parent"):
            one["GPU_I_PROFILE"], one["GPU_I_ID"] = str(row.get("mig_profile", "")), str(row.get("gpu_instance_id", ""))
        labels[str(row["uuid"])] = {**one, **host_label}
    return labels


def _series(rows: list[tuple[Labels, dict[str, object]]], field: str, factor: float) -> list[Series]:
    found = ((labels, gpu.get(field)) for labels, gpu in rows)
    return [(labels, float(value) * factor) for labels, value in found if isinstance(value, (int, float))]


def _free_memory(rows: list[tuple[Labels, dict[str, object]]]) -> list[Series]:
    """Used, free and reserved make up the total; without the reserved part free is not known."""
    series = []
    for labels, gpu in rows:
        parts = [gpu.get(f"memory_{part}_bytes") for part in ("total", "used", "reserved")]
        numbers = [part for part in parts if isinstance(part, (int, float))]
        if len(numbers) == len(parts):
            series.append((labels, (numbers[0] - numbers[1] - numbers[2]) / _MIB))
    return series


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1 << 53 else repr(float(value))
