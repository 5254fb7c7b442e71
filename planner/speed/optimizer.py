"""The optimizer's own time: it reads and writes its states once a step, on the card or over PCI Express on the host."""

from __future__ import annotations

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import pcie
from planner.runs import TrainingRun
from planner.speed.cards import card
from planner.speed.terms import Constant, TimeTerm, time_term

# Bytes read and written for one trained parameter: states and master in 32 bit read and written, the gradient read, 16-bit weights written.
_STATE_BYTES = {
    "adamw": 16.0,
    "adamw-8bit": 4.0,
    "adamw-8bit-paged": 4.0,
    "adafactor": 2.0,
    "sgd": 0.0,
    "sgd-momentum": 8.0,
    "muon": 8.0,
}
_MASTER_BYTES, _PLAIN_BYTES, _GRADIENT_BYTES = 10.0, 4.0, 4.0
# Norm of the gradients and their scaling, unfused updates.
UNFUSED = Constant(
    2.0,
    0.4,
    "bytes of an update as multiples of the least",
    "torch.optim foreach implementations read and write temporaries",
)
HOST_MEMORY = Constant(
    200e9,
    0.4,
    "bytes/s of the host's memory that one machine's optimizer reaches",
    "DDR4-3200, 16 channels of two sockets: 400 GB/s printed",
)
_HOST_GPUS = 8
# Muon makes each update orthogonal: 5 steps of three products, at most 6 m^2 n for m x n weights (Jordan et al. 2024).
_MUON_STEPS, _MUON_PRODUCTS = 5, 6


def optimizer_term(run: TrainingRun, gpu: Gpu, trained: float) -> TimeTerm:
    shards = run.layout.data * run.layout.context if run.layout.zero_stage else 1
    updated = trained / shards
    size = updated * UNFUSED.value * update_bytes(run)
    if run.optimizer_offload:
        return _offloaded(run, gpu, updated, size / UNFUSED.value)
    reached = card(gpu, run.compute_dtype)
    flops = updated * _MUON_STEPS * _MUON_PRODUCTS * run.shape.hidden if run.optimizer == "muon" else 0.0
    return time_term(
        "optimizer",
        size / reached.memory + flops / reached.matrix16,
        UNFUSED.spread,
        formula="trained parameters of this GPU x bytes of an update / reached bandwidth (+ 30 h each for Muon / reached FLOP/s)",
        source=UNFUSED.source,
    )


def update_bytes(run: TrainingRun) -> float:
    """Of one parameter, the least."""
    states = (
        _STATE_BYTES[run.optimizer]
        if run.master_weights or run.optimizer.startswith("adamw-8bit")
        else _STATE_BYTES[run.optimizer] / 2
    )
    return states + (_MASTER_BYTES if run.master_weights else _PLAIN_BYTES) + _GRADIENT_BYTES


def _offloaded(run: TrainingRun, gpu: Gpu, updated: float, size: float) -> TimeTerm:
    """Gradients go down and weights come up over PCI Express; all cards of a machine share its memory."""
    link = pcie(gpu)
    on_host = min(run.layout.gpus, _HOST_GPUS) * size / HOST_MEMORY.value
    return time_term(
        "optimizer",
        4 * updated / link.reached + on_host,
        HOST_MEMORY.spread,
        formula="(gradients down + weights up) / PCI Express + update of all the machine's shards / its memory bandwidth",
        source=f"{link.source}; {HOST_MEMORY.source}",
    )
