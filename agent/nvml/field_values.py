"""Values that NVML hands out by field id, several in one call, each with a return code of its own."""

from __future__ import annotations

import pynvml

from agent.nvml.calls import UnavailableError, call, reason_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KIB = 1 << 10
# The union member to read, by value type (nvml.h, nvmlValueType_t)
_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
ALL_LINKS = 0xFFFFFFFF

MEMORY_TEMPERATURE = pynvml.NVML_FI_DEV_MEMORY_TEMP
RECOVERY_ACTION = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
PCIE_RX_BYTES = pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES
PCIE_TX_BYTES = pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES
NVLINK_RX_BYTES = pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES
NVLINK_TX_BYTES = pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES
NVLINK_RX_KIB = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
NVLINK_TX_KIB = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
# NVLink fields take a link as scope; all ones means the sum over links
_SCOPES = {NVLINK_RX_BYTES: ALL_LINKS, NVLINK_TX_BYTES: ALL_LINKS, NVLINK_RX_KIB: ALL_LINKS, NVLINK_TX_KIB: ALL_LINKS}
ASKED = (
    MEMORY_TEMPERATURE,
    RECOVERY_ACTION,
    PCIE_RX_BYTES,
    PCIE_TX_BYTES,
    NVLINK_RX_BYTES,
    NVLINK_TX_BYTES,
    NVLINK_RX_KIB,
    NVLINK_TX_KIB,
)
# Counters that become a rate: the field, and where to read it, best source first, with the factor to bytes
COUNTERS: dict[str, tuple[tuple[int, int], ...]] = {
    "pcie_rx_bytes_per_second": ((PCIE_RX_BYTES, 1),),
    "pcie_tx_bytes_per_second": ((PCIE_TX_BYTES, 1),),
    "nvlink_rx_bytes_per_second": ((NVLINK_RX_BYTES, 1), (NVLINK_RX_KIB, _KIB)),
    "nvlink_tx_bytes_per_second": ((NVLINK_TX_BYTES, 1), (NVLINK_TX_KIB, _KIB)),
}


def read_field_values(handle: Any, fields: tuple[int, ...] = ASKED) -> tuple[dict[int, float], dict[int, str]]:
    """(values, reasons), both by field id. Raises UnavailableError when the call as a whole fails."""
    rows = call("nvmlDeviceGetFieldValues", handle, [(field, _SCOPES.get(field, 0)) for field in fields])
    values: dict[int, float] = {}
    reasons: dict[int, str] = {}
    for field, row in zip(fields, rows):
        member = _MEMBERS.get(row.valueType)
        if row.nvmlReturn != pynvml.NVML_SUCCESS:
            reasons[field] = reason_for(row.nvmlReturn)
        elif member is None:
            reasons[field] = "unknown_type"
        else:
            values[field] = getattr(row.value, member)
    return values, reasons


def counter_bytes(values: dict[int, float], field: str) -> float | None:
    """The counter behind a rate, in bytes, from the best source that answered."""
    return next((values[source] * factor for source, factor in COUNTERS[field] if source in values), None)


def missing_reason(reasons: dict[int, str], field: str) -> str:
    return next((reasons[source] for source, _ in COUNTERS[field] if source in reasons), "not_supported")


__all__ = ["COUNTERS", "UnavailableError", "counter_bytes", "missing_reason", "read_field_values"]
