"""Hugging Face Accelerate: one script, and a file that decides between DDP, FSDP2 and DeepSpeed."""

from __future__ import annotations

from planner.launchers.base import (
    NODE_RANK,
    Artefact,
    Command,
    File,
    Launcher,
    Order,
    Shell,
    TrainingOrder,
    command_text,
    options,
)
from planner.launchers.torchrun import unfit as unfit_for_torchrun
from planner.launchers.training import data_notes, script_arguments, shared_scripts
from planner.reasons import Reason, reason

CONFIG = "accelerate.yaml"


def unfit(order: Order) -> Reason | None:
    if why := unfit_for_torchrun(order):
        return why
    assert isinstance(order, TrainingOrder)
    if order.run.layout.zero_stage == 1:
        return reason("launch.unfit.zero_1")
    if order.run.logits == "chunked":
        return reason("launch.unfit.chunked")
    return None


def config_text(order: TrainingOrder) -> str:
    """Names and words are ours and the model's data never enters: plain YAML needs no quoting."""
    run, place = order.run, order.place
    lines = ["compute_environment: LOCAL_MACHINE", "debug: false"]
    if run.layout.zero_stage >= 2:
        lines += ["distributed_type: FSDP", "fsdp_config:", *(f"  {line}" for line in fsdp_lines(order))]
    else:
        lines += [f"distributed_type: {'MULTI_GPU' if place.gpus > 1 else 'NO'}"]
    lines += [
        "downcast_bf16: 'no'",
        "gpu_ids: all",
        "machine_rank: 0",
        f"main_process_ip: {place.leader}",
        f"main_process_port: {place.port}",
        "main_training_function: main",
        f"mixed_precision: {'no' if run.compute_dtype == 'fp32' else run.compute_dtype}",
        f"num_machines: {len(place.hosts)}",
        f"num_processes: {place.gpus}",
        "rdzv_backend: static",
        "same_network: true",
        "use_cpu: false",
    ]
    return "\n".join(lines) + "\n"


def fsdp_lines(order: TrainingOrder) -> list[str]:
    run = order.run
    return [
        "fsdp_version: 2",
        f"fsdp_reshard_after_forward: {str(run.layout.zero_stage == 3).lower()}",
        "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        "fsdp_state_dict_type: SHARDED_STATE_DICT",
        f"fsdp_offload_params: {str(run.parameter_offload).lower()}",
        # The script turns checkpointing on in the model: twice would recompute twice.
        "fsdp_activation_checkpointing: false",
        "fsdp_cpu_ram_efficient_loading: true",
    ]


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    place = order.place
    words = ["accelerate", "launch", f"--config_file={CONFIG}"]
    if place.several_nodes:
        words += [Shell(f"--machine_rank={NODE_RANK}")]
    words += ["train_accelerate.py", *options(script_arguments(order))]
    note = "launch.note.fsdp2" if order.run.layout.zero_stage >= 2 else "launch.note.ddp"
    start = Command(place.everywhere, command_text(words, place.environment()), Reason(note))
    files = (*shared_scripts("train_accelerate.py"), File(CONFIG, config_text(order)))
    return Artefact("accelerate", files, (start,), data_notes(order))


LAUNCHER = Launcher(
    key="accelerate", unfit=unfit, write=write, packages=("transformers", "datasets", "peft", "accelerate")
)
