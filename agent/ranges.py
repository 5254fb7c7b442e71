"""What values are physically possible. Drivers hand out garbage now and then: all ones, blanks of another layer, 4294967295 %."""

from __future__ import annotations

import math

# "Not available" in NVML (all ones), and DCGM's blanks, which some driver builds leak (dcgm_structs.h: DCGM_*_BLANK)
_ALL_ONES = frozenset({2**32 - 1, 2**63 - 1, 2**64 - 1})
_BLANKS = frozenset(base + step for base in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 2**47) for step in range(16))
SENTINELS = _ALL_ONES | _BLANKS

_PERCENT = (0.0, 100.0)
_RATIO = (0.0, 1.0)
_BYTES = (0.0, float(1 << 46))
# A wall clock's worth of any counter: above it, only garbage
_COUNT = (0.0, float(1 << 52))
# NVLink 5 moves 1.8e12 bytes a second over all links of a GPU
_BYTES_PER_SECOND = (0.0, 1e13)

RANGES: dict[str, tuple[float, float]] = {
    "utilization_percent": _PERCENT,
    "memory_utilization_percent": _PERCENT,
    "encoder_percent": _PERCENT,
    "decoder_percent": _PERCENT,
    # Fans are driven beyond their rated speed at times
    "fan_percent": (0.0, 200.0),
    "sm_activity": _RATIO,
    "sm_occupancy": _RATIO,
    "tensor_activity": _RATIO,
    "dram_activity": _RATIO,
    "memory_used_bytes": _BYTES,
    "memory_reserved_bytes": _BYTES,
    "memory_total_bytes": (1.0, float(1 << 46)),
    "power_watts": (0.0, 5000.0),
    "power_limit_watts": (0.0, 5000.0),
    "energy_joules": (0.0, 1e15),
    "temperature_celsius": (-40.0, 150.0),
    "memory_temperature_celsius": (-40.0, 150.0),
    "sm_clock_mhz": (0.0, 10_000.0),
    "memory_clock_mhz": (0.0, 50_000.0),
    "throttle_reasons": (0.0, float(1 << 32)),
    "pcie_rx_bytes_per_second": _BYTES_PER_SECOND,
    "pcie_tx_bytes_per_second": _BYTES_PER_SECOND,
    "nvlink_rx_bytes_per_second": _BYTES_PER_SECOND,
    "nvlink_tx_bytes_per_second": _BYTES_PER_SECOND,
    "ecc_corrected": _COUNT,
    "ecc_uncorrected": _COUNT,
    "remapped_rows_corrected": (0.0, 1e6),
    "remapped_rows_uncorrected": (0.0, 1e6),
    "pcie_replays": _COUNT,
    "process_count": (0.0, 1e5),
    "process_memory_bytes": _BYTES,
}
# HBM parts that have no sensor report 0 degrees; a running GPU is never at the freezing point
_ZERO_IS_ABSENT = frozenset({"memory_temperature_celsius"})


def plausible(field: str, value: float) -> bool:
    """Whether ``value`` can be a reading of ``field`` at all."""
    if not math.isfinite(value) or value in SENTINELS or (value == 0 and field in _ZERO_IS_ABSENT):
        return False
    low, high = RANGES.get(field, (-math.inf, math.inf))
    return low <= value <= high
