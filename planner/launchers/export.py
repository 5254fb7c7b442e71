"""From what training leaves to a directory that Hugging Face's and every serving engine's loaders read."""

from __future__ import annotations

from planner.launchers.base import (
    Artefact,
    Command,
    File,
    Launcher,
    Option,
    Order,
    TrainingOrder,
    command_text,
    options,
    script,
)
from planner.reasons import Reason, reason

MERGED = "merged"


def unfit(order: Order) -> Reason | None:
    return None if isinstance(order, TrainingOrder) else reason("launch.unfit.training_only")


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    steps = [*from_adapters(order)] if order.run.method != "full" else []
    files: list[File] = [script("merge.py")] if steps else []
    if order.run.engine == "deepspeed":
        steps.append(from_deepspeed(order))
        files.append(script("gather.py"))
    if order.run.engine == "megatron" and order.run.method == "full":
        steps.append(from_megatron(order))
        files.append(script("convert.py"))
    if order.run.engine not in {"deepspeed", "megatron"} and order.run.method == "full":
        steps.append(from_sharded(order))
        files.append(script("gather.py"))
    return Artefact("export", tuple(files), tuple(steps), (reason("launch.note.export"),))


def from_adapters(order: TrainingOrder) -> tuple[Command, ...]:
    """Merged in 16 bits: a base in 4 bits is read again as it was published."""
    pairs: list[Option] = [
        ("model", order.model),
        ("adapters", f"{order.output}/model"),
        ("output", f"{order.output}/{MERGED}"),
        ("dtype", {"fp32": "float32", "fp16": "float16"}.get(order.run.compute_dtype, "bfloat16")),
    ]
    return (Command("one-machine", command_text(["python", "merge.py", *options(pairs)]), reason("launch.note.merge")),)


def from_deepspeed(order: TrainingOrder) -> Command:
    pairs: list[Option] = [
        ("model", order.model),
        ("deepspeed", order.output),
        ("output", f"{order.output}/gathered"),
    ]
    return Command(
        "one-machine", command_text(["python", "gather.py", *options(pairs)]), reason("launch.note.gather_deepspeed")
    )


def from_sharded(order: TrainingOrder) -> Command:
    """The newest checkpoint of a run that did not reach its end; one that did has written `model` already."""
    pairs: list[Option] = [("model", order.model), ("sharded", order.output), ("output", f"{order.output}/gathered")]
    return Command(
        "one-machine", command_text(["python", "gather.py", *options(pairs)]), reason("launch.note.gather_sharded")
    )


def from_megatron(order: TrainingOrder) -> Command:
    pairs: list[Option] = [
        ("export", order.model),
        ("megatron", f"{order.output}/megatron"),
        ("output", f"{order.output}/model"),
    ]
    return Command(
        order.place.once, command_text(["python", "convert.py", *options(pairs)]), reason("launch.note.megatron_export")
    )


LAUNCHER = Launcher(key="export", unfit=unfit, write=write, packages=("transformers", "peft", "accelerate"))
