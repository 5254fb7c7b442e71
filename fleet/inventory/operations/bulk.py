"""The same act on many machines: each is begun or refused by itself, so that one refusal keeps nobody else waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.operations.requests import (
    request_reboot,
    request_save_image,
    request_start,
    request_stop,
    request_terminate,
)
from fleet.teams.audit import Actor

REQUESTS: Mapping[str, Callable[..., Operation]] = {
    OperationKind.START: request_start,
    OperationKind.STOP: request_stop,
    OperationKind.TERMINATE: request_terminate,
    OperationKind.REBOOT: request_reboot,
    OperationKind.SAVE_IMAGE: request_save_image,
}
# What each act takes beside its machine.
ARGUMENTS: Mapping[str, frozenset[str]] = {
    OperationKind.START: frozenset({"override_reason"}),
    OperationKind.STOP: frozenset({"accept_loss", "override_reason"}),
    OperationKind.TERMINATE: frozenset({"accept_loss", "override_reason"}),
    OperationKind.REBOOT: frozenset({"override_reason"}),
    OperationKind.SAVE_IMAGE: frozenset({"name"}),
}


@dataclass(frozen=True, slots=True)
class Begun:
    """What became of one machine's request: an operation, or why there is none."""

    instance: Instance
    operation: Operation | None = None
    refusal: Refused | None = None


def request_act(*, actor: Actor, instance: Instance, kind: str, **more: Any) -> Operation:
    """Any act on one machine. Raises Refused."""
    return REQUESTS[kind](actor=actor, instance=instance, **more)


def request_many(*, actor: Actor, instances: Iterable[Instance], kind: str, **more: Any) -> list[Begun]:
    return [_one(actor=actor, instance=instance, kind=kind, **more) for instance in instances]


def _one(*, actor: Actor, instance: Instance, kind: str, **more: Any) -> Begun:
    try:
        return Begun(instance, request_act(actor=actor, instance=instance, kind=kind, **more))
    except Refused as refusal:
        return Begun(instance, refusal=refusal)
