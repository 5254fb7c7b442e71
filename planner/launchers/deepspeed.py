"""DeepSpeed: ZeRO 0 to 3 with buckets and offload, as one JSON file says."""

from __future__ import annotations

import json
from collections.abc import Mapping

from planner.launchers.base import (
    NODE_RANK,
    Artefact,
    Command,
    File,
    Launcher,
    Option,
    Order,
    Shell,
    TrainingOrder,
    command_text,
    first_reason,
    options,
)
from planner.launchers.training import data_notes, learning_rate, script_arguments, shared_scripts, unfit_for_scripts
from planner.reasons import Reason, reason
from planner.runs import TrainingRun

CONFIG = "deepspeed.json"
HOSTS = "hosts"
OPTIMIZERS = ("adamw", "adamw-8bit")
# DeepSpeed's own defaults, in elements; written down because memory depends on them.
REDUCE_BUCKET = 500_000_000
GATHER_BUCKET = 500_000_000
PREFETCH_BUCKET = 50_000_000
PERSISTENT_BELOW = 100_000
MOST_LIVE = 1_000_000_000


def unfit(order: Order) -> Reason | None:
    if why := unfit_for_scripts(order):
        return why
    assert isinstance(order, TrainingOrder)
    run, stage = order.run, order.run.layout.zero_stage
    rules = [
        (run.method == "qlora" and stage == 3, reason("launch.unfit.sharded_four_bits")),
        (run.parameter_offload and stage < 3, reason("launch.unfit.parameter_offload")),
        (run.optimizer_offload and not stage, reason("launch.unfit.optimizer_offload")),
        (
            run.optimizer_offload and run.optimizer != "adamw",
            reason("launch.unfit.sharded_optimizer", optimizer=run.optimizer),
        ),
        (run.optimizer not in OPTIMIZERS, reason("launch.unfit.optimizer", optimizer=run.optimizer)),
        (run.logits == "chunked", reason("launch.unfit.chunked")),
    ]
    return first_reason(rules)


def config(order: TrainingOrder) -> dict[str, object]:
    """The keys of DeepSpeed's configuration. Rates change per step in the script; the one here is the peak."""
    run = order.run
    settings: dict[str, object] = {
        "train_micro_batch_size_per_gpu": run.micro_batch,
        "gradient_accumulation_steps": run.gradient_accumulation,
        "gradient_clipping": 1.0,
        "steps_per_print": 1000,
        "optimizer": optimizer(run, learning_rate(order)),
        "zero_optimization": zero(run),
    }
    if run.compute_dtype in {"bf16", "fp16"}:
        settings[run.compute_dtype] = {"enabled": True}
    if run.optimizer == "adamw-8bit":
        settings["zero_allow_untested_optimizer"] = True
    return settings


def optimizer(run: TrainingRun, rate: float) -> dict[str, object]:
    parameters: dict[str, object] = {"lr": rate, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}
    if run.optimizer == "adamw-8bit":
        return {"type": "Adam8bit", "params": parameters}
    if not run.optimizer_offload:
        # PyTorch's AdamW: DeepSpeed's fused one is compiled on the machine when it starts.
        parameters["torch_adam"] = True
    return {"type": "AdamW", "params": parameters}


def zero(run: TrainingRun) -> dict[str, object]:
    stage = run.layout.zero_stage
    settings: dict[str, object] = {"stage": stage}
    if stage >= 1:
        settings |= {"overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": REDUCE_BUCKET}
    if stage in {1, 2}:
        settings |= {"allgather_bucket_size": GATHER_BUCKET}
    if stage == 3:
        settings |= stage_3()
    if run.optimizer_offload and stage:
        settings["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if run.parameter_offload:
        settings["offload_param"] = {"device": "cpu", "pin_memory": True}
    return settings


def stage_3() -> Mapping[str, object]:
    return {
        "stage3_prefetch_bucket_size": PREFETCH_BUCKET,
        "stage3_param_persistence_threshold": PERSISTENT_BELOW,
        "stage3_max_live_parameters": MOST_LIVE,
        "stage3_max_reuse_distance": MOST_LIVE,
        "stage3_gather_16bit_weights_on_model_save": True,
    }


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    place = order.place
    files = [*shared_scripts("train_deepspeed.py"), File(CONFIG, json.dumps(config(order), indent=2) + "\n")]
    launcher: list[str] = ["deepspeed"]
    if place.several_nodes:
        files.append(File(HOSTS, "".join(f"{host} slots={place.gpus_per_node}\n" for host in place.hosts)))
        # Every node starts its own part: no machine needs the right to log in to another.
        several: list[Option] = [
            ("hostfile", HOSTS),
            ("no_ssh", True),
            ("master_addr", place.leader),
            ("master_port", place.port),
        ]
        launcher += [*options(several), Shell(f"--node_rank={NODE_RANK}")]
    else:
        launcher += options([("num_gpus", place.gpus_per_node), ("master_port", place.port)])
    arguments: list[Option] = [*script_arguments(order), ("deepspeed", True), ("deepspeed_config", CONFIG)]
    words = [*launcher, "train_deepspeed.py", *options(arguments)]
    note = reason("launch.note.deepspeed", stage=order.run.layout.zero_stage)
    notes = (*data_notes(order), reason("launch.note.nvcc")) if order.run.optimizer_offload else data_notes(order)
    start = Command(place.everywhere, command_text(words, place.environment()), note)
    return Artefact("deepspeed", tuple(files), (start,), notes)


LAUNCHER = Launcher(
    key="deepspeed",
    unfit=unfit,
    write=write,
    frameworks=lambda _order: ("deepspeed",),
    packages=("transformers", "datasets", "peft", "accelerate"),
)
