"""PyTorch's own launcher: DDP where the model fits on every GPU, FSDP2 where its states are split."""

from __future__ import annotations

from planner.launchers.base import (
    Artefact,
    Command,
    Launcher,
    Option,
    Order,
    Place,
    TrainingOrder,
    command_text,
    first_reason,
    options,
)
from planner.launchers.training import data_notes, script_arguments, shared_scripts, unfit_for_scripts
from planner.reasons import Reason, reason


def torchrun_words(place: Place) -> list[str]:
    """The same on every node: the nodes find each other at the first host, and agree on their ranks there."""
    if not place.several_nodes:
        return ["torchrun", "--standalone", f"--nproc-per-node={place.gpus_per_node}"]
    rendezvous: list[Option] = [
        ("nnodes", len(place.hosts)),
        ("nproc-per-node", place.gpus_per_node),
        ("rdzv-backend", "c10d"),
        ("rdzv-id", "rackrent"),
        ("rdzv-endpoint", f"{place.leader}:{place.port}"),
    ]
    return ["torchrun", *options(rendezvous)]


def unfit(order: Order) -> Reason | None:
    if why := unfit_for_scripts(order):
        return why
    assert isinstance(order, TrainingOrder)
    run, stage = order.run, order.run.layout.zero_stage
    sharded = stage >= 2
    other_optimizer = reason("launch.unfit.sharded_optimizer", optimizer=run.optimizer)
    rules = [
        (run.optimizer_offload and not (sharded and run.parameter_offload), reason("launch.unfit.optimizer_offload")),
        (run.parameter_offload and not sharded, reason("launch.unfit.parameter_offload")),
        (sharded and run.method == "qlora", reason("launch.unfit.sharded_four_bits")),
        (sharded and run.compute_dtype == "fp16", reason("launch.unfit.sharded_fp16")),
        (sharded and run.optimizer.startswith("adamw-8bit"), other_optimizer),
        (stage == 1 and run.optimizer != "adamw", other_optimizer),
    ]
    return first_reason(rules)


def write(order: Order) -> Artefact:
    assert isinstance(order, TrainingOrder)
    run, place = order.run, order.place
    arguments: list[Option] = [*script_arguments(order), ("chunked-loss", run.logits == "chunked")]
    if run.layout.zero_stage >= 2:
        main, note = "train_fsdp2.py", "launch.note.fsdp2"
        arguments += [("keep-gathered", run.layout.zero_stage == 2), ("offload", run.parameter_offload)]
    else:
        main, note = "train_ddp.py", "launch.note.ddp"
        arguments += [("shard-optimizer", run.layout.zero_stage == 1)]
    words = [*torchrun_words(place), main, *options(arguments)]
    start = Command(place.everywhere, command_text(words, place.environment()), Reason(note))
    return Artefact("torchrun", shared_scripts(main), (start,), data_notes(order))


LAUNCHER = Launcher(
    key="torchrun", unfit=unfit, write=write, packages=("transformers", "datasets", "peft", "accelerate")
)
