"""Hugging Face's own loop: TRL's SFTTrainer with PEFT, every choice an argument of its configuration."""

from __future__ import annotations

import json
from dataclasses import replace

from planner.launchers.base import (
    Artefact,
    Command,
    File,
    Launcher,
    Option,
    Order,
    TrainingOrder,
    command_text,
    first_reason,
    options,
    script,
)
from planner.launchers.torchrun import torchrun_words
from planner.launchers.torchrun import unfit as unfit_for_torchrun
from planner.launchers.training import data_notes, learning_rate, lora_of, module_names
from planner.reasons import Reason, reason
from planner.runs import TrainingRun

FSDP = "fsdp.json"
OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adamw-8bit": "adamw_bnb_8bit",
    "adamw-8bit-paged": "paged_adamw_8bit",
    "adafactor": "adafactor",
    "sgd": "sgd",
}
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, TrainingOrder):
        return reason("launch.unfit.training_only")
    # TRL moves activations to the machine's memory, which our own scripts don't.
    if why := unfit_for_torchrun(replace(order, run=replace(order.run, activation_offload=False))):
        return why
    rules = [
        (order.run.layout.zero_stage == 1, reason("launch.unfit.zero_1")),
        (order.run.optimizer not in OPTIMIZERS, reason("launch.unfit.optimizer", optimizer=order.run.optimizer)),
    ]
    return first_reason(rules)


def fsdp_config(run: TrainingRun) -> dict[str, object]:
    """The keys of TrainingArguments.fsdp_config."""
    return {
        "version": 2,
        "reshard_after_forward": run.layout.zero_stage == 3,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "cpu_ram_efficient_loading": True,
        "cpu_offload": run.parameter_offload,
        "activation_checkpointing": run.checkpointing != "none",
        "state_dict_type": "SHARDED_STATE_DICT",
    }


def arguments(order: TrainingOrder) -> list[Option]:
    """Arguments of SFTConfig, and of the script's own part."""
    run = order.run
    sharded = run.layout.zero_stage >= 2
    pairs: list[Option] = [
        ("model", order.model),
        ("dataset", order.dataset),
        ("output_dir", order.output),
        ("method", run.method),
        # Weights that AdamW works on: fp32 where a full run keeps master weights; autocast computes in 16 bits.
        ("dtype", "float32" if run.method == "full" and run.master_weights else DTYPES[run.compute_dtype]),
        ("attention", "eager" if run.attention == "eager" else "sdpa"),
        ("max_length", run.sequence_length),
        ("packing", run.packed),
        ("packing_strategy", "wrapped" if run.packed else None),
        ("per_device_train_batch_size", run.micro_batch),
        ("gradient_accumulation_steps", run.gradient_accumulation),
        ("num_train_epochs", order.epochs),
        ("learning_rate", learning_rate(order)),
        ("lr_scheduler_type", "cosine"),
        ("warmup_steps", "0.03"),
        ("optim", OPTIMIZERS[run.optimizer]),
        ("bf16", str(run.compute_dtype == "bf16")),
        ("fp16", str(run.compute_dtype == "fp16")),
        # FSDP checkpoints its own units, or every layer would be gathered once more.
        ("activation_checkpointing", str(run.checkpointing != "none" and not sharded)),
        ("activation_offloading", run.activation_offload),
        ("torch_compile", run.compiled),
        ("loss_type", "chunked_nll" if run.logits == "chunked" else None),
        ("logging_steps", 10),
        ("save_steps", 500),
        ("report_to", "none"),
        ("ddp_find_unused_parameters", "False"),
        ("fsdp", sharded),
        ("fsdp_config", FSDP if sharded else None),
    ]
    if run.method != "full":
        adapted, whole = module_names(lora_of(order))
        pairs += [("lora_rank", lora_of(order).rank), ("lora_targets", adapted), ("lora_whole", whole or None)]
    return pairs


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    place = order.place
    files = [script("train_trl.py")]
    if order.run.layout.zero_stage >= 2:
        files.append(File(FSDP, json.dumps(fsdp_config(order.run), indent=2) + "\n"))
    words = [*torchrun_words(place), "train_trl.py", *options(arguments(order))]
    start = Command(place.everywhere, command_text(words, place.environment()), reason("launch.note.trl"))
    return Artefact("huggingface", tuple(files), (start,), data_notes(order))


LAUNCHER = Launcher(
    key="huggingface", unfit=unfit, write=write, packages=("transformers", "datasets", "peft", "accelerate", "trl")
)
