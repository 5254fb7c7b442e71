"""Which of our readings go out under which of DCGM's names. What they are called and in which unit stands once, in the dialect that reads them."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.telemetry.readings import HOST_COLUMNS
from fleet.telemetry.scrape.dialects import dcgm

# Older releases of DCGM have another name for the same mask.
_OLD_NAMES = {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"}
_READ = {
    **dcgm.CARD,
    **dcgm.WHOLE_CARD_ONLY,
    **dcgm.PART,
    dcgm.REMAP_FAILURE: ("remapped_rows_failed", 1.0),
}
_DESCRIPTIONS = {
    "DCGM_FI_DEV_SM_CLOCK": "SM clock frequency (in MHz).",
    "DCGM_FI_DEV_MEM_CLOCK": "Memory clock frequency (in MHz).",
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_MEMORY_TEMP": "Memory temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": "Power limit in force (in W).",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "Why clocks are held down (bit mask of NVML).",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "Energy since the driver was loaded (in mJ).",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "PCIe retries.",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "Single-bit ECC errors since the driver was loaded.",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "Double-bit ECC errors since the driver was loaded.",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "Rows remapped for correctable errors.",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "Rows remapped for uncorrectable errors.",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "Whether remapping of rows has failed.",
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "Memory bandwidth utilization (in %).",
    "DCGM_FI_DEV_ENC_UTIL": "Encoder utilization (in %).",
    "DCGM_FI_DEV_DEC_UTIL": "Decoder utilization (in %).",
    "DCGM_FI_DEV_FB_USED": "Frame buffer memory used (in MiB).",
    "DCGM_FI_DEV_FB_RESERVED": "Frame buffer memory reserved (in MiB).",
    "DCGM_FI_DEV_FB_TOTAL": "Frame buffer memory in all (in MiB).",
    "DCGM_FI_PROF_SM_ACTIVE": "Ratio of time with at least one warp on an SM.",
    "DCGM_FI_PROF_SM_OCCUPANCY": "Ratio of resident warps to the most possible.",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Ratio of cycles the tensor pipe was active.",
    "DCGM_FI_PROF_DRAM_ACTIVE": "Ratio of cycles the memory interface was active.",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "Bytes sent over PCIe (per second).",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "Bytes received over PCIe (per second).",
}
_COUNTERS = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
}


@dataclass(frozen=True, slots=True)
class Name:
    """`factor` brings our unit to DCGM's. `needs`: only where this reading is there too."""

    name: str
    kind: str
    description: str
    field: str
    factor: float = 1.0
    needs: str = ""


def _name(name: str, field: str, to_ours: float, needs: str = "") -> Name:
    kind = "counter" if name in _COUNTERS else "gauge"
    return Name(name, kind, _DESCRIPTIONS[name], field, 1 / to_ours, needs)


GPU_NAMES = (
    *(_name(name, field, to_ours) for name, (field, to_ours) in _READ.items() if name not in _OLD_NAMES),
    # PCIe rates of another source than the activity counters are no profiling metric.
    *(_name(name, field, 1.0, needs="sm_activity") for name, field in dcgm.PCIE.items()),
)
FREE_DESCRIPTION = "Frame buffer memory free (in MiB)."
XID_DESCRIPTION = "The last XID of the last 24 hours; not a count."

_HOST_WORDS = {
    "cpu_percent": "CPU time in use (in %).",
    "cpu_iowait_percent": "CPU time that waits for disks (in %).",
    "load1": "Load of the last minute.",
    "memory_used_bytes": "Memory in use.",
    "pressure_cpu_percent": "Time in which something waited for a CPU (in %).",
    "pressure_memory_percent": "Time in which something waited for memory (in %).",
    "pressure_io_percent": "Time in which something waited for a disk (in %).",
    "disk_read_bytes_per_second": "Bytes read from disks (per second).",
    "disk_write_bytes_per_second": "Bytes written to disks (per second).",
    "disk_read_iops": "Reads from disks (per second).",
    "disk_write_iops": "Writes to disks (per second).",
    "disk_read_latency_seconds": "Mean time of a read.",
    "disk_write_latency_seconds": "Mean time of a write.",
    "disk_busy_percent": "Time in which the busiest disk worked (in %).",
    "network_rx_bytes_per_second": "Bytes received (per second).",
    "network_tx_bytes_per_second": "Bytes sent (per second).",
    "filesystem_used_bytes": "Disk space in use.",
    "ssh_sessions": "People signed in over SSH.",
    "jupyter_busy_kernels": "Jupyter kernels that compute.",
    "memory_total_bytes": "Memory in all.",
    "filesystem_total_bytes": "Disk space in all.",
}
# Of host_latest, by name; the two totals are not in samples.
HOST_FIELDS = (*HOST_COLUMNS, "memory_total_bytes", "filesystem_total_bytes")
HOST_NAMES = tuple(Name(f"rackrent_host_{field}", "gauge", _HOST_WORDS[field], field) for field in HOST_FIELDS)
