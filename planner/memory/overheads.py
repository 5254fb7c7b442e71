"""What is neither model nor activation: library workspaces, the allocator's slack, the CUDA context, NCCL."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalogue.gpus import Gpu
from planner.estimates import Term
from planner.memory.elements import GIB, MIB

# cuBLAS and Transformer Engine take fixed workspaces through the allocator: 32 MiB more from Hopper on (PyTorch's default
# CUBLAS_WORKSPACE_CONFIG); the rest is what Megatron's logs of 0.5 GB toys leave over their model states.
WORKSPACE_BYTES = 70 * MIB
WORKSPACE_HOPPER_BYTES = 28 * MIB
# Cached blocks that fit no request: reserved over allocated in steady training.
ALLOCATOR_SLACK = 0.03
ALLOCATOR_SLACK_BYTES = 0.4 * GIB
# The driver's context with the kernels of PyTorch loaded; of each card in an NCCL group, its channels' buffers.
CONTEXT_BYTES = 0.6 * GIB
NCCL_BYTES = 0.5 * GIB


def workspace_term(gpu: Gpu | None) -> Term:
    hopper = gpu is not None and gpu.compute_capability is not None and gpu.compute_capability >= (9, 0)
    amount = WORKSPACE_BYTES + (WORKSPACE_HOPPER_BYTES if hopper else 0)
    return Term.within(
        "workspaces", amount, 0.4, formula="fixed", source="PyTorch CUBLAS_WORKSPACE_CONFIG; Megatron-LM golden values"
    )


def outside_terms(allocated: float, *, gpus: int) -> Iterator[Term]:
    """What shows only in the reserved and the device counter."""
    slack = ALLOCATOR_SLACK_BYTES + ALLOCATOR_SLACK * allocated
    yield Term(
        "allocator_slack",
        slack,
        0.0,
        3 * slack,
        formula=f"0.4 GiB + {ALLOCATOR_SLACK:g} x allocated",
        source="PyTorch caching allocator; fitted on device readings of LoRA runs",
        counter="reserved",
    )
    yield Term.within(
        "cuda_context",
        CONTEXT_BYTES,
        0.4,
        formula="fixed",
        source="driver context and loaded kernels, fitted",
        counter="device",
    )
    if gpus > 1:
        yield Term.within("nccl", NCCL_BYTES, 0.6, formula="fixed", source="NCCL channel buffers", counter="device")
