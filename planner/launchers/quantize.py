"""A recipe that makes the weights smaller before serving, and the evaluation that must follow it."""

from __future__ import annotations

from planner.launchers.base import (
    Artefact,
    Command,
    Launcher,
    Option,
    Order,
    ServingOrder,
    command_text,
    options,
    script,
)
from planner.reasons import Reason, reason
from planner.runs import WeightFormat

# Names that scripts/quantize.py gives its recipes.
RECIPES: dict[WeightFormat, str] = {
    "int8": "int8",
    "gptq-int8": "gptq-int8",
    "gptq-int4": "gptq-int4",
    "awq-int4": "awq-int4",
    "fp8": "fp8",
    "nf4": "nf4",
    "nf4-dq": "nf4",
}
NOTES = {
    "int8": "launch.note.quantize.int8",
    "gptq-int8": "launch.note.quantize.gptq-int8",
    "gptq-int4": "launch.note.quantize.gptq-int4",
    "awq-int4": "launch.note.quantize.awq-int4",
    "fp8": "launch.note.quantize.fp8",
    "nf4": "launch.note.quantize.nf4",
}
CALIBRATED = {"int8", "gptq-int8", "gptq-int4", "awq-int4"}


def unfit(order: Order) -> Reason | None:
    if not isinstance(order, ServingOrder):
        return reason("launch.unfit.serving_only")
    if order.run.weight_format not in RECIPES:
        return reason("launch.unfit.nothing_to_quantize")
    return None


def frameworks(order: Order) -> tuple[str, ...]:
    return ("bitsandbytes",) if order.run.weight_format.startswith("nf4") else ("llmcompressor",)


def write(order: Order) -> Artefact:
    assert isinstance(order, ServingOrder)
    recipe = RECIPES[order.run.weight_format]
    target = f"quantized-{recipe}"
    make: list[Option] = [
        ("model", order.model),
        ("recipe", recipe),
        ("calibration", "calibration.jsonl" if recipe in CALIBRATED else None),
        ("output", target),
    ]
    judge: list[Option] = [
        ("before", order.model),
        ("after", target),
        ("texts", "evaluation.jsonl"),
        ("most-loss", 0.02),
    ]
    commands = (
        Command("one-machine", command_text(["python", "quantize.py", *options(make)]), Reason(NOTES[recipe])),
        Command(
            "one-machine",
            command_text(["python", "evaluate.py", *options(judge)]),
            reason("launch.note.quantize_judge"),
        ),
    )
    notes = [reason("launch.note.evaluation_texts")]
    if recipe in CALIBRATED:
        notes.insert(0, reason("launch.note.calibration_texts"))
    if recipe.endswith("int4"):
        notes.append(reason("launch.note.evaluate"))
    return Artefact("quantize", (script("quantize.py"), script("evaluate.py")), commands, tuple(notes))


LAUNCHER = Launcher(
    key="quantize",
    unfit=unfit,
    write=write,
    frameworks=frameworks,
    packages=("transformers", "datasets", "accelerate"),
)
