"""From the planner's address and the name of a launcher to an order that lacks only its machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from jobs.book.models import JobKind
from jobs.plans.commands import DATA, INSTALL, LEFT_OUT, OUTPUT, PORT, Asked, asked_for, command_of, files_of, hosts_for
from jobs.plans.predicted import host_of, predicted_of
from planner.catalogue.gpus import Gpu
from planner.launchers.base import Artefact, Order, TrainingOrder
from planner.launchers.environment import stack_for
from planner.launchers.registry import LAUNCHERS, make_artefact
from planner.reasons import Reason
from planner.web.artefacts import order_of
from planner.web.asking import make_plan
from planner.web.inputs import PlanInput
from planner.web.query import data_of, query_of
from planner.web.words import sentence

# The rest of the launchers make files out of files, and end.
KINDS = {
    **dict.fromkeys(
        ("torchrun", "huggingface", "accelerate", "deepspeed", "megatron", "colossalai", "paddle"), JobKind.TRAINING
    ),
    **dict.fromkeys(("vllm", "tensorrt_llm"), JobKind.SERVING),
}
# Of jobs.book.serving.Engine.
ENGINES = {"vllm": "vllm", "tensorrt_llm": "trtllm"}
# Of planner.launchers.base.ServingOrder.
SERVING_PORT = 8000


class PlanRefused(ValueError):
    """Why no job can be made of an address; `field`: plan or launcher."""

    def __init__(self, text: str | Promise, field: str = "plan") -> None:
        super().__init__(text)
        self.text, self.field = text, field


@dataclass(frozen=True, slots=True)
class Draft:
    """`machines`: how many it takes, of `gpus_per_machine` each. `asked`: variables that somebody has to give values. `notes`: what to know before."""

    plan: str
    launcher: str
    kind: JobKind
    name: str
    command: str
    files: Sequence[dict[str, object]]
    asked: Sequence[Asked]
    gpu: Gpu
    gpus_per_machine: int
    machines: int
    predicted: Mapping[str, Any]
    notes: Sequence[str]

    @property
    def installs(self) -> bool:
        """Whether there is a script that installs what it needs."""
        return any(file["path"] == INSTALL for file in self.files)

    @property
    def serving(self) -> dict[str, Any]:
        """Order.serving of what the launcher starts; {} where it serves nothing."""
        return {"port": SERVING_PORT, "engine": ENGINES[self.launcher]} if self.kind == JobKind.SERVING else {}

    def order_fields(self) -> dict[str, Any]:
        """Columns of an Order that it fills."""
        names = ("plan", "launcher", "kind", "name", "command", "files", "predicted", "installs", "serving")
        return {name: getattr(self, name) for name in names} | {"processes_per_node": self.gpus_per_machine}


def draft_of(*, plan: str, launcher: str) -> Draft:
    """`plan`: query of the planner's address. Sentences in the language of the thread. Raises PlanRefused."""
    chosen = LAUNCHERS.get(launcher)
    if chosen is None:
        text = _("There is no launcher of this name. Choose one on the planner's page.")
        raise PlanRefused(text, "launcher")
    given = read_plan(plan)
    made = make_plan(given)
    if made.best is None:
        raise PlanRefused(_("Nothing fits this plan: there is nothing to start."))
    order = _placed(order_of(made.best, given))
    artefact = make_artefact(chosen, order)
    if isinstance(artefact, Reason):
        raise PlanRefused(sentence(artefact), "launcher")
    each, solution = order.place.gpus_per_node, stack_for(chosen, order)
    predicted = predicted_of(made.best, launcher=chosen, gpus_per_machine=each, solution=solution)
    return _draft(query_of(given), order, artefact, predicted | {"host": host_of(made.host)})


def read_plan(plan: str) -> dict[str, Any]:
    """The plan that the planner's page would show at this address. Raises PlanRefused."""
    asked = PlanInput(data=data_of(QueryDict(plan)))
    if not asked.is_valid():
        raise PlanRefused(_("This plan cannot be read: %(fields)s.") % {"fields": ", ".join(sorted(asked.errors))})
    given: dict[str, Any] = asked.validated_data
    return given


def _draft(plan: str, order: Order, artefact: Artefact, predicted: Mapping[str, Any]) -> Draft:
    command, files = command_of(artefact, sentence), files_of(artefact)
    return Draft(
        plan=plan,
        launcher=artefact.launcher,
        kind=KINDS.get(artefact.launcher, JobKind.COMMAND),
        name=f"{order.run.shape.name} {predicted['method']}"[:120],
        command=command,
        files=files,
        asked=asked_for(command, files, installs=True),
        gpu=order.place.gpu,
        gpus_per_machine=order.place.gpus_per_node,
        machines=len(order.place.hosts),
        predicted=predicted,
        notes=[sentence(note) for note in artefact.notes if note.key not in LEFT_OUT],
    )


def _placed(order: Order) -> Order:
    """With names that stand for what is known only on the machines."""
    place = replace(order.place, hosts=hosts_for(order.place), port=PORT)
    if isinstance(order, TrainingOrder):
        return replace(order, place=place, dataset=DATA, output=OUTPUT)
    return replace(order, place=place)
