"""Ends the worker at the n-th border between two steps of the driver: around each call and reading, and inside each transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# Every place after which something else is committed, and one inside each transaction. What lies between two of them is the same to rows.
BORDERS = (
    "before sending.announce_call",
    "after sending.announce_call",
    "after sending.call",
    "before sending.note",
    "after sending.accepted",
    "after proving.read",
    "after proving.apply_reading",
    "before proving.note",
    "after proving.write",
)


class Killed(BaseException):
    """Like the end of a process: nothing catches it, and what was not committed is gone."""


class Killer:
    def __init__(self, at: int) -> None:
        self.at, self.passed, self.where = at, 0, ""

    @property
    def fired(self) -> bool:
        return bool(self.where)

    def border(self, where: str) -> None:
        if where not in BORDERS:
            return
        if self.passed == self.at and not self.fired:
            self.where = where
            raise Killed(where)
        self.passed += 1


@contextmanager
def killing(killer: Killer) -> Iterator[Killer]:
    with pytest.MonkeyPatch.context() as patch:
        for step in {border.split(" ")[1] for border in BORDERS}:
            module, name = step.split(".")
            path = f"fleet.inventory.operations.{module}.{name}"
            patch.setattr(path, between(killer, step, found(path)))
        yield killer


def found(path: str) -> Callable[..., Any]:
    from importlib import import_module

    module, _, name = path.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def between(killer: Killer, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(*arguments: Any, **named: Any) -> Any:
        killer.border(f"before {step}")
        answer = function(*arguments, **named)
        killer.border(f"after {step}")
        return answer

    return stepped
