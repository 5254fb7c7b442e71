"""Whether anything starts a run: a layout that no launcher takes is no choice, however well it fits."""

from __future__ import annotations

from planner.catalogue.gpus import gpus
from planner.launchers.base import Place, TrainingOrder
from planner.launchers.registry import LAUNCHERS
from planner.runs import TrainingRun

# The others serve, or turn finished weights into another format.
TRAINING_LAUNCHERS = ("huggingface", "deepspeed", "megatron", "torchrun", "accelerate", "colossalai", "paddle")
_MACHINE = 8


def is_launchable(run: TrainingRun) -> bool:
    """What a launcher takes depends on the run alone, not on the card or on the names of model and machines."""
    count = run.layout.gpus
    each = min(count, _MACHINE)
    place = Place(next(iter(gpus().values())), each, tuple(f"node-{number}" for number in range(count // each)))
    order = TrainingOrder(run, place, "model", "data")
    return any(LAUNCHERS[key].unfit(order) is None for key in TRAINING_LAUNCHERS)
