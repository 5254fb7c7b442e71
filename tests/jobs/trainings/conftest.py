from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[2] / ".venv-launchers" / "bin" / "python"


@pytest.fixture(scope="session")
def launchers() -> Path:
    """Where torchrun and accelerate are."""
    if not PYTHON.exists():
        reason = "the launchers are not installed (make launchers)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return PYTHON.parent


@pytest.fixture
def torchrun(launchers: Path) -> str:
    """Up to its program: one process on each of the job's machines."""
    return (
        f"exec {launchers}/torchrun --nnodes=$NNODES --node-rank=$NODE_RANK --nproc-per-node=$NPROC_PER_NODE"
        f" --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT {HERE}/programs/train.py"
    )


@pytest.fixture
def accelerate(launchers: Path) -> str:
    return (
        f"exec {launchers}/accelerate launch --multi_gpu --num_machines=$NNODES --machine_rank=$NODE_RANK"
        f" --num_processes=$((NNODES * NPROC_PER_NODE)) --main_process_ip=$MASTER_ADDR --main_process_port=$MASTER_PORT"
        f" --mixed_precision=no --dynamo_backend=no {HERE}/programs/train.py --accelerate"
    )
