"""Examples of the schema: a job on two machines, and what it is answered with."""

from __future__ import annotations

from typing import Any

JOB_EXAMPLE: dict[str, Any] = {
    "id": 7,
    "team": "acme",
    "name": "llama-sft",
    "kind": "training",
    "state": "running",
    "state_since": "2026-11-30T08:01:12Z",
    "why": "",
    "says": "",
    "project": "vision",
    "machines": [17, 18],
    "attempt": 1,
    "step": 1200,
    "steps": 4000,
    "created_by": "bob",
    "created_at": "2026-11-30T08:00:40Z",
    "started_at": "2026-11-30T08:01:12Z",
    "ended_at": None,
    "deadline_at": "2026-12-01T08:00:00Z",
    "when_done": "stop",
    "stop_asked_at": None,
    "rerun_of": None,
}
NODE_EXAMPLE: dict[str, Any] = {
    "rank": 0,
    "instance": 17,
    "machine": "train-01",
    "state": "running",
    "exit_code": None,
    "prepared_at": "2026-11-30T08:01:05Z",
    "started_at": "2026-11-30T08:01:12Z",
    "ended_at": None,
    "reached_at": "2026-11-30T09:12:30Z",
    "failures": 0,
    "error": "",
    "error_says": "",
    "offered_key": "",
    "log_bytes": 482133,
    "facts": {},
}
ATTEMPT_EXAMPLE: dict[str, Any] = {
    "number": 1,
    "state": "running",
    "why": "",
    "created_at": "2026-11-30T08:00:40Z",
    "started_at": "2026-11-30T08:01:12Z",
    "ended_at": None,
    "nodes": [NODE_EXAMPLE],
}
WHOLE_JOB_EXAMPLE: dict[str, Any] = {
    **JOB_EXAMPLE,
    "command": "torchrun --nnodes $NNODES --node-rank $NODE_RANK --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT train.py",
    "launcher": "",
    "plan": "",
    "predicted": {},
    "files": [],
    "environment": {"NCCL_DEBUG": "WARN"},
    "secret_names": ["HF_TOKEN"],
    "repository": "https://git.example.org/acme/train.git",
    "revision": "main",
    "data_path": "/data/corpus",
    "checkpoint_path": "/data/checkpoints",
    "processes_per_node": 8,
    "retries": 2,
    "resume_arguments": "--resume",
    "serving": {},
    "attempts": [ATTEMPT_EXAMPLE],
}
NEW_JOB_EXAMPLE: dict[str, Any] = {
    "name": "llama-sft",
    "kind": "training",
    "machines": [17, 18],
    "command": "torchrun --nnodes $NNODES --node-rank $NODE_RANK --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT train.py",
    "environment": {"NCCL_DEBUG": "WARN"},
    "secrets": {"HF_TOKEN": "hf_0123456789"},
    "retries": 2,
    "when_done": "stop",
}
