"""All launchers, in the order in which a page shows them: the simplest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.launchers import (
    accelerate,
    colossalai,
    deepspeed,
    export,
    huggingface,
    megatron,
    paddle,
    quantize,
    tensorrt_llm,
    torchrun,
    vllm,
)
from planner.launchers.base import Artefact, Launcher, Order
from planner.launchers.environment import install_script
from planner.reasons import Reason, reason

_MODULES = (
    torchrun,
    huggingface,
    accelerate,
    deepspeed,
    megatron,
    colossalai,
    paddle,
    export,
    vllm,
    tensorrt_llm,
    quantize,
)
LAUNCHERS: Mapping[str, Launcher] = {module.LAUNCHER.key: module.LAUNCHER for module in _MODULES}


def make_artefact(launcher: Launcher, order: Order) -> Artefact | Reason:
    """Files and commands with the script that installs what they need; or why this launcher cannot do it."""
    if why := launcher.unfit(order):
        return why
    artefact = launcher.write(order)
    install = install_script(launcher, order)
    if install is None:
        return replace(artefact, notes=(reason("launch.note.no_stack"), *artefact.notes))
    return replace(artefact, files=(install, *artefact.files), notes=(reason("launch.note.install"), *artefact.notes))


def make_artefacts(order: Order) -> dict[str, Artefact | Reason]:
    return {key: make_artefact(launcher, order) for key, launcher in LAUNCHERS.items()}
