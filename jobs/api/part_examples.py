"""Examples of the schema: what belongs to a job."""

from __future__ import annotations

from typing import Any

EVENT_EXAMPLE: dict[str, Any] = {
    "id": 90,
    "at": "2026-11-30T09:12:30Z",
    "kind": "ended",
    "says": "ended on the machine: exit code 1",
    "attempt": 1,
    "rank": 0,
    "instance": 17,
    "detail": "",
    "values": {"exit_code": 1},
    "by": None,
}
POINT_EXAMPLE: dict[str, Any] = {
    "id": 4711,
    "at": "2026-11-30T09:12:20Z",
    "attempt": 1,
    "source": "log",
    "line": 412,
    "step": 1200,
    "steps": 4000,
    "epoch": 0.3,
    "loss": 1.874,
    "eval_loss": None,
    "learning_rate": 0.00002,
    "grad_norm": None,
    "seconds_per_step": 1.31,
    "samples_per_second": None,
    "tokens_per_second": 24800.0,
    "tokens_per_gpu": None,
    "tflops_per_gpu": None,
    "memory_bytes": None,
    "skipped_steps": None,
    "others": {},
    "not_finite": ["grad_norm"],
}
FINDING_EXAMPLE: dict[str, Any] = {
    "id": 12,
    "attempt": 1,
    "code": "data_starvation",
    "title": "The GPUs wait for data",
    "sure": "likely",
    "because": [{"code": "gpu_waits", "values": {"share": 0.4}, "says": "The GPUs wait 40 % of the time"}],
    "remedies": [
        {"code": "more_workers", "values": {}, "saves_bytes": None, "says": "Load data with more worker processes."}
    ],
    "lines": [412],
    "gpus": [0, 1],
    "since": "2026-11-30T08:40:00Z",
    "found_at": "2026-11-30T08:45:00Z",
    "seen_at": "2026-11-30T09:12:00Z",
    "gone_at": None,
}
