"""The table of the page: of each machine what decided its verdict, the stop under way, and what a person can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.idle.verdict.verdict import Answer
from fleet.idle.watch.models import IdleVerdictRow
from fleet.idle.watch.words import reason_text
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.preview import Preview, Situation, preview
from fleet.pages.fleet import Fleet
from fleet.pages.idle.stops import UnderWay
from fleet.pages.idle.wasters import Waster
from fleet.pages.machine import NO_GPU, MachineView
from fleet.providers.errors import Invalid
from fleet.states import GpuState

REASONS_SHOWN = 4
UNJUDGED_SHOWN = 6
# What is offered first: of a machine that can be stopped nothing need be deleted.
OFFERED = (OperationKind.STOP, OperationKind.TERMINATE)


@dataclass(frozen=True)
class Row:
    waster: Waster
    verdict: IdleVerdictRow | None
    stop: UnderWay | None
    act: Preview | None

    @property
    def view(self) -> MachineView:
        return self.waster.view

    @property
    def reasons(self) -> list[str]:
        return reasons_of(self.verdict)

    @property
    def answer(self) -> str:
        return self.verdict.answer if self.verdict else ""


def reasons_of(verdict: IdleVerdictRow | None, most: int = REASONS_SHOWN) -> list[str]:
    return [reason_text(reason) for reason in verdict.because[:most]] if verdict else []


def verdicts_of(instances: Iterable[int]) -> dict[int, IdleVerdictRow]:
    return IdleVerdictRow.objects.select_related("policy").in_bulk(list(instances))


def rows_of(wasters: Sequence[Waster], *, stops: Mapping[int, UnderWay], may_act: bool, now: datetime) -> list[Row]:
    machines = [one.view.instance for one in wasters]
    verdicts = verdicts_of(machine.pk for machine in machines)
    acts = acts_on(machines, now=now) if may_act else {}
    return [
        Row(one, verdicts.get(machine.pk), stops.get(machine.pk), acts.get(machine.pk))
        for one, machine in zip(wasters, machines, strict=True)
    ]


def acts_on(machines: Sequence[Instance], *, now: datetime) -> dict[int, Preview]:
    """Of each machine the mildest end that can be begun; none of those of which none can."""
    situation = Situation.of(machines, now=now)
    found = {machine.pk: mildest_end(machine, situation) for machine in machines}
    return {pk: act for pk, act in found.items() if act is not None}


def mildest_end(machine: Instance, situation: Situation) -> Preview | None:
    try:
        offered = (preview(machine, kind, situation) for kind in OFFERED)
        return next((one for one in offered if one.is_open_to), None)
    except Invalid:
        # Its account's adapter is not installed here.
        return None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A machine that runs, and of which nobody can say whether it is idle. `why` is empty where it was not judged yet."""

    view: MachineView
    why: str


@dataclass(frozen=True, slots=True)
class Unjudgeds:
    shown: list[Unjudged]
    more: int


def unjudged_of(fleet: Fleet, wasters: Iterable[Waster]) -> Unjudgeds:
    """The dearest first. Machines that are off, and those without a GPU, have nothing that could be idle; `wasters` say it of themselves."""
    listed = {one.view.instance.pk for one in wasters}
    running = [view for view in fleet.machines if view.worst != NO_GPU and view.state is not GpuState.STOPPED]
    judged = dict(
        IdleVerdictRow.objects.filter(instance__team=fleet.team, instance__gone_at=None)
        .exclude(answer=Answer.UNKNOWN)
        .values_list("instance_id", "answer")
    )
    found = [view for view in running if view.instance.pk not in judged and view.instance.pk not in listed]
    found.sort(key=lambda view: (view.price is None, -(view.price or 0), view.instance.name))
    shown = found[:UNJUDGED_SHOWN]
    verdicts = verdicts_of(view.instance.pk for view in shown)
    lines = [Unjudged(view, "; ".join(reasons_of(verdicts.get(view.instance.pk), 2))) for view in shown]
    return Unjudgeds(lines, len(found) - len(shown))
