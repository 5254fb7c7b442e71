"""What one GPU is asked for in each sample: one small function for each NVML call, yielding (field, value) pairs."""

from __future__ import annotations

import pynvml

from agent.host.memory import meminfo_bytes
from agent.nvml.calls import UnavailableError, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Pairs = list[tuple[str, float | bool]]
    Reading = Callable[[Any], Pairs]

_MILLI = 1e-3
_KIB = 1 << 10


def utilization(handle: Any) -> Pairs:
    """``memory_utilization_percent`` is the share of time the memory was read or written, not how full it is."""
    rates = call("nvmlDeviceGetUtilizationRates", handle)
    return [("utilization_percent", rates.gpu), ("memory_utilization_percent", rates.memory)]


def memory(handle: Any) -> Pairs:
    """Version 2 tells reserved memory apart; version 1 (before R510) counts it as used, which is said."""
    try:
        info = call("nvmlDeviceGetMemoryInfo", handle, pynvml.nvmlMemory_v2)
    except UnavailableError as error:
        if error.reason not in ("function_not_found", "version_not_supported", "invalid_argument"):
            raise
        old = call("nvmlDeviceGetMemoryInfo", handle)
        return [("memory_used_bytes", old.used), ("memory_total_bytes", old.total), ("memory_includes_reserved", True)]
    return [
        ("memory_used_bytes", info.used),
        ("memory_reserved_bytes", info.reserved),
        ("memory_total_bytes", info.total),
        ("memory_includes_reserved", False),
    ]


def unified_memory(root: str) -> Pairs:
    """GPUs that share the machine's memory (GB10) have none of their own to report."""
    info = meminfo_bytes(root)
    if "MemTotal" not in info or "MemAvailable" not in info:
        raise UnavailableError("not_supported")
    used = info["MemTotal"] - info["MemAvailable"]
    return [("memory_used_bytes", used), ("memory_total_bytes", info["MemTotal"]), ("unified_memory", True)]


def power(handle: Any) -> Pairs:
    return [("power_watts", call("nvmlDeviceGetPowerUsage", handle) * _MILLI)]


def power_limit(handle: Any) -> Pairs:
    return [("power_limit_watts", call("nvmlDeviceGetEnforcedPowerLimit", handle) * _MILLI)]


def energy(handle: Any) -> Pairs:
    """Since the driver was loaded."""
    return [("energy_joules", call("nvmlDeviceGetTotalEnergyConsumption", handle) * _MILLI)]


def temperature(handle: Any) -> Pairs:
    return [("temperature_celsius", call("nvmlDeviceGetTemperature", handle, pynvml.NVML_TEMPERATURE_GPU))]


def sm_clock(handle: Any) -> Pairs:
    return [("sm_clock_mhz", call("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM))]


def memory_clock(handle: Any) -> Pairs:
    return [("memory_clock_mhz", call("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_MEM))]


def throttle_reasons(handle: Any) -> Pairs:
    """The old name first: it is in every driver of today, the new one (event reasons) only since R535."""
    try:
        return [("throttle_reasons", call("nvmlDeviceGetCurrentClocksThrottleReasons", handle))]
    except UnavailableError as error:
        if error.reason != "function_not_found":
            raise
    return [("throttle_reasons", call("nvmlDeviceGetCurrentClocksEventReasons", handle))]


def fan(handle: Any) -> Pairs:
    return [("fan_percent", call("nvmlDeviceGetFanSpeed", handle))]


def ecc_corrected(handle: Any) -> Pairs:
    """Volatile counters: aggregate ones stay up after a row was remapped and all is well again."""
    kinds = (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC)
    return [("ecc_corrected", call("nvmlDeviceGetTotalEccErrors", handle, *kinds))]


def ecc_uncorrected(handle: Any) -> Pairs:
    kinds = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    return [("ecc_uncorrected", call("nvmlDeviceGetTotalEccErrors", handle, *kinds))]


def remapped_rows(handle: Any) -> Pairs:
    corrected, uncorrected, pending, failed = call("nvmlDeviceGetRemappedRows", handle)
    return [
        ("remapped_rows_corrected", corrected),
        ("remapped_rows_uncorrected", uncorrected),
        ("remapped_rows_pending", bool(pending)),
        ("remapped_rows_failed", bool(failed)),
    ]


def encoder(handle: Any) -> Pairs:
    return [("encoder_percent", call("nvmlDeviceGetEncoderUtilization", handle)[0])]


def decoder(handle: Any) -> Pairs:
    return [("decoder_percent", call("nvmlDeviceGetDecoderUtilization", handle)[0])]


def pcie_replays(handle: Any) -> Pairs:
    return [("pcie_replays", call("nvmlDeviceGetPcieReplayCounter", handle))]


def pcie_window(handle: Any) -> Pairs:
    """What went over PCIe in the last 20 ms: a look, not an average. NVML waits out the window, once for each direction."""
    received = call("nvmlDeviceGetPcieThroughput", handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
    sent = call("nvmlDeviceGetPcieThroughput", handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
    return [("pcie_rx_bytes_per_second", received * _KIB), ("pcie_tx_bytes_per_second", sent * _KIB)]


# Fields by the reading that gives them: where a reading fails, all of its fields are unavailable for its reason
READINGS: tuple[tuple[Reading, tuple[str, ...]], ...] = (
    (utilization, ("utilization_percent", "memory_utilization_percent")),
    (memory, ("memory_used_bytes", "memory_total_bytes")),
    (power, ("power_watts",)),
    (power_limit, ("power_limit_watts",)),
    (energy, ("energy_joules",)),
    (temperature, ("temperature_celsius",)),
    (sm_clock, ("sm_clock_mhz",)),
    (memory_clock, ("memory_clock_mhz",)),
    (throttle_reasons, ("throttle_reasons",)),
    (fan, ("fan_percent",)),
    (ecc_corrected, ("ecc_corrected",)),
    (ecc_uncorrected, ("ecc_uncorrected",)),
    (
        remapped_rows,
        ("remapped_rows_corrected", "remapped_rows_uncorrected", "remapped_rows_pending", "remapped_rows_failed"),
    ),
    (encoder, ("encoder_percent",)),
    (decoder, ("decoder_percent",)),
    (pcie_replays, ("pcie_replays",)),
)
# A MIG instance has only these of its own; the board's power or clocks belong to all instances together
MIG_READINGS = READINGS[1:2]
