"""Activity counters of Hopper and newer (GPM): the honest answer to how much of a GPU works.

Two samples of the hardware's counters give the average in between. Here that is the whole time between two of the agent's
samples, not a window of some milliseconds. NVML reports percentages 0-100 and MiB/s (nvml.h, nvmlGpmMetricId_t).
"""

from __future__ import annotations

import pynvml

from agent.nvml.calls import UnavailableError, call, reason_for
from agent.ranges import plausible

_MIB = 1 << 20
_PERCENT_TO_RATIO = 0.01
# metric id: (field, factor to the field's unit)
METRICS: dict[int, tuple[str, float]] = {
    pynvml.NVML_GPM_METRIC_SM_UTIL: ("sm_activity", _PERCENT_TO_RATIO),
    pynvml.NVML_GPM_METRIC_SM_OCCUPANCY: ("sm_occupancy", _PERCENT_TO_RATIO),
    pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: ("tensor_activity", _PERCENT_TO_RATIO),
    pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL: ("dram_activity", _PERCENT_TO_RATIO),
    pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC: ("pcie_tx_bytes_per_second", _MIB),
    pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC: ("pcie_rx_bytes_per_second", _MIB),
    pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: ("nvlink_rx_bytes_per_second", _MIB),
    pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: ("nvlink_tx_bytes_per_second", _MIB),
}


class GpmReader:
    """For a GPU, or for one MIG GPU instance of it. ``close`` frees what NVML allocated."""

    def __init__(self, handle: object, gpu_instance_id: int | None = None) -> None:
        self._handle = handle
        self._gpu_instance_id = gpu_instance_id
        self._before: object | None = None
        self._spare: object | None = None

    def read(self) -> tuple[dict[str, float], dict[str, str]]:
        """(values by field, reasons by field). The first read only begins an interval: both are empty then."""
        newest = self._spare if self._spare is not None else call("nvmlGpmSampleAlloc")
        self._spare = None
        try:
            self._sample_into(newest)
        except UnavailableError:
            self._spare = newest
            raise
        before, self._before = self._before, newest
        if before is None:
            return {}, {}
        self._spare = before
        return _decoded(_metrics(before, newest))

    def restart(self) -> None:
        """Begin anew: after an XID the counters may stand still or be blank."""
        self._spare, self._before = self._before or self._spare, None

    def close(self) -> None:
        for sample in (self._before, self._spare):
            if sample is not None:
                call("nvmlGpmSampleFree", sample)
        self._before = self._spare = None

    def _sample_into(self, sample: object) -> None:
        if self._gpu_instance_id is None:
            call("nvmlGpmSampleGet", self._handle, sample)
        else:
            call("nvmlGpmMigSampleGet", self._handle, self._gpu_instance_id, sample)


def supported(handle: object) -> bool:
    """Whether the chip and the driver have GPM. Raises UnavailableError."""
    support = call("nvmlGpmQueryDeviceSupport", handle)
    return bool(getattr(support, "isSupportedDevice", 0))


def _metrics(before: object, after: object) -> pynvml.c_nvmlGpmMetricsGet_t:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(METRICS)
    request.sample1, request.sample2 = before, after
    for place, metric in enumerate(METRICS):
        request.metrics[place].metricId = metric
    call("nvmlGpmMetricsGet", request)
    return request


def _decoded(request: pynvml.c_nvmlGpmMetricsGet_t) -> tuple[dict[str, float], dict[str, str]]:
    """Every metric has a return code of its own, and may be NaN beside success."""
    values, reasons = {}, {}
    for place, (field, factor) in enumerate(METRICS.values()):
        metric = request.metrics[place]
        value = metric.value * factor
        if metric.nvmlReturn != pynvml.NVML_SUCCESS:
            reasons[field] = reason_for(metric.nvmlReturn)
        elif plausible(field, value):
            values[field] = value
        else:
            reasons[field] = "out_of_range"
    return values, reasons
