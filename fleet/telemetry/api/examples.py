"""Examples that the schema shows for machines at work."""

from __future__ import annotations

from typing import Any

GPU_READING_EXAMPLE: dict[str, Any] = {
    "sampled_at": "2026-11-30T08:00:05Z",
    "received_at": "2026-11-30T08:00:10.120000Z",
    "age_seconds": 6.5,
    "utilization_percent": 97.0,
    "memory_utilization_percent": 61.0,
    "memory_used_bytes": 38654705664,
    "memory_reserved_bytes": 611319808,
    "sm_activity": 0.91,
    "sm_occupancy": 0.44,
    "tensor_activity": 0.52,
    "dram_activity": 0.58,
    "power_watts": 371.4,
    "power_limit_watts": 400.0,
    "temperature_celsius": 63.0,
    "memory_temperature_celsius": 71.0,
    "sm_clock_mhz": 1410,
    "memory_clock_mhz": 1215,
    "throttle_reasons": 4,
    "pcie_rx_bytes_per_second": 81264640.0,
    "pcie_tx_bytes_per_second": 40632320.0,
    "nvlink_rx_bytes_per_second": None,
    "nvlink_tx_bytes_per_second": None,
    "process_count": 1,
    "process_memory_bytes": 38218498048,
    "memory_total_bytes": 42949672960,
    "lost": False,
    "busy_at": "2026-11-30T08:00:05Z",
    "idle_since": None,
    "health": {"ecc_uncorrected": 0, "unavailable": {"fan_percent": "not_supported"}},
    "processes": [{"pid": 4711, "memory_bytes": 38218498048, "name": "python", "resolved": True}],
}
HOST_READING_EXAMPLE: dict[str, Any] = {
    "sampled_at": "2026-11-30T08:00:05Z",
    "received_at": "2026-11-30T08:00:10.120000Z",
    "age_seconds": 6.5,
    "cpu_percent": 34.2,
    "cpu_iowait_percent": 0.4,
    "load1": 31.7,
    "memory_used_bytes": 412316860416,
    "pressure_cpu_percent": 0.1,
    "pressure_memory_percent": 0.0,
    "pressure_io_percent": 0.6,
    "disk_read_bytes_per_second": 210763776.0,
    "disk_write_bytes_per_second": 1048576.0,
    "disk_read_iops": 1640.0,
    "disk_write_iops": 22.0,
    "disk_read_latency_seconds": 0.00041,
    "disk_write_latency_seconds": 0.00032,
    "disk_busy_percent": 38.0,
    "network_rx_bytes_per_second": 125829120.0,
    "network_tx_bytes_per_second": 2097152.0,
    "filesystem_used_bytes": 1099511627776,
    "ssh_sessions": 1,
    "jupyter_busy_kernels": None,
    "memory_total_bytes": 1236950581248,
    "filesystem_total_bytes": 8001563222016,
    "cpu_limit_cores": None,
    "detail": {"interfaces": [{"name": "ens32", "rx_bytes_per_second": 125829120.0, "tx_bytes_per_second": 2097152.0}]},
}
GPU_NOW_EXAMPLE: dict[str, Any] = {
    "gpu": 41,
    "index": 0,
    "uuid": "GPU-6f2c1a52-0f4b-7c1d-9a3e-2b5d8c7e1f00",
    "name": "NVIDIA A100-SXM4-40GB",
    "state": "working",
    "because": {"utilization_percent": 97.0},
    "reading": GPU_READING_EXAMPLE,
}
UNREAD_GPU_EXAMPLE: dict[str, Any] = {
    "gpu": None,
    "index": 1,
    "uuid": "",
    "name": "A100-SXM4-40GB",
    "state": "unknown",
    "because": {"reason": "no_report"},
    "reading": None,
}
MACHINE_NOW_EXAMPLE: dict[str, Any] = {
    "instance": 17,
    "team": "acme",
    "name": "train-01",
    "instance_state": "running",
    "state": "unknown",
    "gpus": [GPU_NOW_EXAMPLE, UNREAD_GPU_EXAMPLE],
    "host": HOST_READING_EXAMPLE,
    "agent": {
        "id": 6,
        "version": "0.1.0",
        "heartbeat_at": "2026-11-30T08:00:02Z",
        "age_seconds": 9.5,
        "nvml_state": "ok",
        "nvml_detail": "",
        "paused": False,
    },
}
_STARTS = ["2026-11-30T07:59:40Z", "2026-11-30T07:59:50Z", "2026-11-30T08:00:00Z"]
_SPAN: dict[str, Any] = {
    "since": "2026-11-30T07:59:40Z",
    "until": "2026-11-30T08:00:10Z",
    "bucket_seconds": 10.0,
    "resolution": "raw",
    "statistic": "mean",
    "percentile_of": None,
    "starts": _STARTS,
}
GPU_SERIES_EXAMPLE: dict[str, Any] = {
    **_SPAN,
    "series": [
        {
            "gpu": 41,
            "instance": 17,
            "values": {"utilization_percent": [96.5, None, 97.0], "power_watts": [370.2, None, 371.4]},
        }
    ],
}
USAGE_EXAMPLE: dict[str, Any] = {
    "since": "2026-11-30T14:00:00Z",
    "until": "2026-11-30T17:00:00Z",
    "bucket_seconds": 3600.0,
    "resolution": "5min",
    "percentile_of": "5min",
    "counted_until": "2026-11-30T16:55:00Z",
    "split": "gpu_model",
    "starts": ["2026-11-30T14:00:00Z", "2026-11-30T15:00:00Z", "2026-11-30T16:00:00Z"],
    "series": [
        {
            "part": "H100 SXM",
            "values": {
                "utilization_p50_percent": [93.0, None, 95.0],
                "utilization_p95_percent": [99.0, None, 100.0],
                "utilization_mean_percent": [81.4, None, 84.0],
                "power_watts": [4410.5, None, 4502.1],
                "working_gpu_hours": [6.9, None, 6.6],
                "held_gpu_hours": [1.1, None, 0.7],
                "free_gpu_hours": [0.0, None, 0.0],
                "starved_gpu_hours": [0.0, None, 0.0],
                "stalled_gpu_hours": [0.0, None, 0.0],
                "unknown_gpu_hours": [0.0, None, 0.03],
                "stopped_gpu_hours": [0.0, None, 0.0],
            },
        }
    ],
}
HOST_SERIES_EXAMPLE: dict[str, Any] = {
    **_SPAN,
    "series": [{"instance": 17, "values": {"cpu_percent": [33.9, None, 34.2]}}],
}
