"""Whose money machines cost: what people set on them, unless a room above knows better. Rules of attribution are above this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation


@dataclass(frozen=True, slots=True)
class Whose:
    account_id: int
    project_id: int | None
    owner_id: int | None


class Attribution(Protocol):
    def of_machines(self, machines: Sequence[Instance]) -> Mapping[int, Whose]:
        """By machine, of those that it knows. A constant number of queries."""

    def of_launch(self, operation: Operation, set_on_it: Whose) -> Whose:
        """Of a machine that is not there yet, with what people will have set on it."""


_known: list[Attribution] = []


def register_attribution(attribution: Attribution) -> None:
    if _known:
        raise ValueError("Whose machines are is registered already")
    _known.append(attribution)


def whose_of(machines: Iterable[Instance]) -> dict[int, Whose]:
    rows = list(machines)
    found = {row.pk: Whose(row.account_id, row.project_id, row.owner_id) for row in rows}
    for attribution in _known:
        found.update(attribution.of_machines(rows))
    return found


def whose_operation(operation: Operation) -> Whose:
    """A new machine becomes the property of whoever asked for it."""
    if operation.instance is not None:
        return whose_of([operation.instance])[operation.instance.pk]
    found = Whose(operation.account_id, operation.project_id, operation.requested_by_id)
    for attribution in _known:
        found = attribution.of_launch(operation, found)
    return found
