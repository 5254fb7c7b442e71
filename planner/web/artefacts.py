"""What starts the chosen option: files and commands of every launcher that can, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.launchers.base import Artefact, Order, Place, ServingOrder, TrainingOrder
from planner.launchers.registry import make_artefacts
from planner.reasons import Reason
from planner.speed.whole_run import GPUS_OF_A_MACHINE
from planner.web.inputs import USUAL_MODEL
from planner.web.options import Row
from planner.web.words import sentence
from planner.web.words.terms import LAUNCHER_NAMES, PLACES

# Where somebody's samples would lie; the scripts read JSON lines.
DATASET = "train.jsonl"


def artefact_rows(option: TrainingOption | ServingOption, given: Mapping[str, Any]) -> list[Row]:
    """In the order of the registry: the simplest first, those that cannot do it last."""
    made = make_artefacts(order_of(option, given))
    rows = [_row(key, artefact) for key, artefact in made.items()]
    return sorted(rows, key=lambda row: row["unfit"] is not None)


def order_of(option: TrainingOption | ServingOption, given: Mapping[str, Any]) -> Order:
    """Of one replica, where it serves. Hosts have names to be replaced where there are several."""
    gpus = option.run.layout.gpus
    each = min(gpus, GPUS_OF_A_MACHINE)
    hosts = ("localhost",) if gpus == each else tuple(f"node-{number}" for number in range(gpus // each))
    place = Place(option.gpu, gpus_per_node=each, hosts=hosts, driver=given["driver"] or None)
    if isinstance(option, TrainingOption):
        return TrainingOrder(
            option.run,
            place,
            model_name(given, option.run.shape.name),
            DATASET,
            epochs=given["epochs"],
            steps=option.whole.steps,
        )
    return ServingOrder(option.run, place, model_name(given, option.run.shape.name))


def model_name(given: Mapping[str, Any], shape_name: str) -> str:
    """The id on the hub; a directory for a model that was pasted or typed."""
    if given["config"] or given["shape"]:
        printable = "".join(letter for letter in shape_name if letter.isprintable()).strip()
        return f"./{printable[:80] or 'model'}"
    return str(given["model"] or USUAL_MODEL)


def _row(key: str, made: Artefact | Reason) -> Row:
    name = LAUNCHER_NAMES[key]
    if isinstance(made, Reason):
        return {"launcher": key, "name": str(name), "unfit": sentence(made), "files": [], "commands": [], "notes": []}
    return {
        "launcher": key,
        "name": str(name),
        "unfit": None,
        "files": [{"name": file.name, "text": file.text} for file in made.files],
        "commands": [
            {
                "where": command.where,
                "where_words": str(PLACES[command.where]),
                "text": command.text,
                "note": sentence(command.note),
            }
            for command in made.commands
        ],
        "notes": [sentence(note) for note in made.notes],
    }
