"""ColossalAI: a plugin for the layout (DDP, low-level ZeRO, Gemini, or tensor and pipeline parallelism), and its own launcher."""

from __future__ import annotations

import json

from planner.launchers.base import (
    Artefact,
    Command,
    File,
    Launcher,
    Option,
    Order,
    Place,
    TrainingOrder,
    command_text,
    first_reason,
    options,
    script,
)
from planner.launchers.torchrun import torchrun_words
from planner.launchers.training import plain_arguments, rules_of_memory
from planner.reasons import Reason, reason

CONFIG = "plugin.json"


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, TrainingOrder):
        return reason("launch.unfit.training_only")
    run, layout = order.run, order.run.layout
    split = layout.tensor * layout.pipeline > 1
    rules = [
        (run.method == "qlora", reason("launch.unfit.four_bits")),
        (layout.context * layout.expert > 1, reason("launch.unfit.context")),
        (split and (layout.zero_stage > 1 or run.method != "full"), reason("launch.unfit.zero_with_split")),
        (layout.zero_stage == 3 and run.method != "full", reason("launch.unfit.adapters")),
        (run.parameter_offload and layout.zero_stage < 3, reason("launch.unfit.parameter_offload")),
        (run.optimizer_offload and not layout.zero_stage, reason("launch.unfit.optimizer_offload")),
        (run.optimizer != "adamw", reason("launch.unfit.optimizer", optimizer=run.optimizer)),
        (run.compute_dtype == "fp8", reason("launch.unfit.fp8")),
        (layout.virtual_pipeline > 1, reason("launch.unfit.virtual_pipeline")),
    ]
    return first_reason([*rules, *rules_of_memory(run, chunked=False)])


def plugin(order: TrainingOrder) -> dict[str, object]:
    """Name of the plugin's class, and the arguments that it is made with."""
    run, layout = order.run, order.run.layout
    if layout.tensor * layout.pipeline > 1:
        return {"plugin": "HybridParallelPlugin", "arguments": hybrid(order)}
    if layout.zero_stage == 3:
        offload = 1.0 if run.optimizer_offload else 0.0
        arguments: dict[str, object] = {
            "precision": run.compute_dtype,
            "placement_policy": "static",
            "shard_param_frac": 1.0,
            "offload_optim_frac": offload,
            "offload_param_frac": 1.0 if run.parameter_offload else 0.0,
            "enable_gradient_accumulation": run.gradient_accumulation > 1,
            "max_norm": 1.0,
        }
        return {"plugin": "GeminiPlugin", "arguments": arguments}
    if layout.zero_stage:
        arguments = {
            "stage": layout.zero_stage,
            "precision": run.compute_dtype,
            "cpu_offload": run.optimizer_offload,
            "master_weights": run.master_weights,
            "max_norm": 1.0,
        }
        return {"plugin": "LowLevelZeroPlugin", "arguments": arguments}
    return {"plugin": "TorchDDPPlugin", "arguments": {}}


def hybrid(order: TrainingOrder) -> dict[str, object]:
    run, layout = order.run, order.run.layout
    arguments: dict[str, object] = {
        "tp_size": layout.tensor,
        "pp_size": layout.pipeline,
        "zero_stage": layout.zero_stage,
        "precision": run.compute_dtype,
        "cpu_offload": run.optimizer_offload,
        "max_norm": 1.0,
        "enable_flash_attention": run.attention == "flash",
        "enable_sequence_parallelism": layout.sequence_parallel,
    }
    if layout.sequence_parallel:
        arguments["sequence_parallelism_mode"] = "split_gather"
    if layout.pipeline > 1:
        arguments |= {"microbatch_size": run.micro_batch, "num_microbatches": None}
    return arguments


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    run, place = order.run, order.place
    files = (script("train_colossalai.py"), File(CONFIG, json.dumps(plugin(order), indent=2) + "\n"))
    arguments: list[Option] = [("plugin", CONFIG), *plain_arguments(order, run.compute_dtype)]
    words = [*launcher_words(place), "train_colossalai.py", *options(arguments)]
    start = Command(place.everywhere, command_text(words, place.environment()), reason("launch.note.colossalai"))
    notes = [reason("launch.note.dataset"), reason("launch.note.colossalai_torch")]
    if place.several_nodes:
        notes.append(reason("launch.note.same_paths"))
    return Artefact("colossalai", files, (start,), tuple(notes))


def launcher_words(place: Place) -> list[str]:
    """Its own launcher reaches other nodes over SSH: where there are several, each starts its own part with torchrun, whose variables it reads too."""
    if place.several_nodes:
        return torchrun_words(place)
    own: list[Option] = [("nproc_per_node", place.gpus_per_node), ("master_port", place.port)]
    return ["colossalai", "run", *options(own)]


LAUNCHER = Launcher(
    key="colossalai", unfit=unfit, write=write, frameworks=lambda _order: ("colossalai",), packages=("datasets",)
)
