"""PaddlePaddle: fleet with data, tensor, pipeline and sharding degrees, started by paddle.distributed.launch."""

from __future__ import annotations

from planner.launchers.base import (
    NODE_RANK,
    Artefact,
    Command,
    Launcher,
    Option,
    Order,
    Shell,
    TrainingOrder,
    command_text,
    first_reason,
    options,
    script,
)
from planner.launchers.training import plain_arguments, rules_of_memory
from planner.reasons import Reason, reason
from planner.runs import Layout

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, TrainingOrder):
        return reason("launch.unfit.training_only")
    run, layout = order.run, order.run.layout
    rules = [
        (run.method == "qlora", reason("launch.unfit.four_bits")),
        (layout.pipeline * layout.context * layout.expert > 1, reason("launch.unfit.context")),
        (layout.tensor > 1 and layout.zero_stage > 1, reason("launch.unfit.zero_with_split")),
        (run.optimizer != "adamw", reason("launch.unfit.optimizer", optimizer=run.optimizer)),
        (run.compute_dtype == "fp8", reason("launch.unfit.fp8")),
        (run.parameter_offload, reason("launch.unfit.parameter_offload")),
        (run.optimizer_offload and layout.zero_stage < 2, reason("launch.unfit.optimizer_offload")),
    ]
    return first_reason([*rules, *rules_of_memory(run, chunked=False)])


def degrees(layout: Layout) -> list[Option]:
    """With sharding, the ranks that share the data also share the states: Paddle counts them once, as sharding."""
    sharded = layout.zero_stage > 0
    return [
        ("dp_degree", 1 if sharded else layout.data),
        ("sharding_degree", layout.data if sharded else 1),
        ("mp_degree", layout.tensor),
        ("sharding_stage", layout.zero_stage),
    ]


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    run, place = order.run, order.place
    devices = ",".join(str(index) for index in range(place.gpus_per_node))
    launcher: list[Option] = [("devices", devices), ("log_dir", f"{order.output}/log")]
    words = ["python", "-m", "paddle.distributed.launch", *options(launcher)]
    if place.several_nodes:
        several: list[Option] = [("nnodes", len(place.hosts)), ("master", f"{place.leader}:{place.port}")]
        words += [*options(several), Shell(f"--rank={NODE_RANK}")]
    arguments: list[Option] = [
        *plain_arguments(order, DTYPES[run.compute_dtype]),
        ("offload", run.optimizer_offload),
        *degrees(run.layout),
    ]
    words += ["train_paddle.py", *options(arguments)]
    start = Command(place.everywhere, command_text(words, place.environment()), reason("launch.note.paddle"))
    notes = [reason("launch.note.dataset_file"), reason("launch.note.paddle_index")]
    if place.several_nodes:
        notes.append(reason("launch.note.same_paths"))
    return Artefact("paddle", (script("train_paddle.py"),), (start,), tuple(notes))


LAUNCHER = Launcher(
    key="paddle", unfit=unfit, write=write, frameworks=lambda _order: ("paddlepaddle-gpu",), packages=("paddlenlp",)
)
