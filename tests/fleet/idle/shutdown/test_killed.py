"""Ends the worker before and after every act, and before and after every commit of a step; the next one goes on, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fleet.alerts.models import Alert, AlertEvent
from fleet.idle.shutdown import carrying, driver
from fleet.idle.shutdown.claims import LEASE
from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.inventory.operations.models import Operation

ACTS = ("warn", "run_hook", "order", "tell_stopped")
BORDERS = [f"{when} {what}" for what in (*ACTS, "step", "begin_stops") for when in ("before", "after")]


class Killed(BaseException):
    """Like the end of a process: nothing catches it, and what was not committed is gone."""


class Once:
    """Ends whoever passes the border for the first time."""

    def __init__(self) -> None:
        self.fired = 0

    def around(self, when: str, function: Callable[..., Any], *, nth: int = 1) -> Callable[..., Any]:
        passed = 0

        def stepped(*arguments: Any, **named: Any) -> Any:
            nonlocal passed
            passed += 1
            dies = passed == nth and not self.fired
            if dies and when == "before":
                self.die()
            answer = function(*arguments, **named)
            if dies and when == "after":
                self.die()
            return answer

        return stepped

    def die(self) -> None:
        self.fired += 1
        raise Killed


def goes_on(room, monkeypatch) -> None:
    """Time goes on; a worker that dies is followed by the next beat, and its claim runs out."""
    beat = room.turn

    def turn() -> None:
        try:
            beat()
        except Killed:
            room.driver.wait(LEASE.total_seconds())

    monkeypatch.setattr(room, "turn", turn)
    room.until("stopped")


def one_of_each(room) -> None:
    stop = IdleStop.objects.get()
    kinds = list(stop.events.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["warned", "grace", "prestop", "stopping", "ordered", "verifying", "stopped"]
    assert room.calls == [("stop", room.machine.external_id)]
    assert Operation.objects.count() == 1
    room.go(1)
    assert Alert.objects.filter(cause="idle.stop").count() == 1
    assert list(AlertEvent.objects.order_by("pk").values_list("kind", flat=True)) == ["opened", "resolved"]
    assert IdleSaving.objects.count() == 1
    assert IdleStop.objects.get().pending == []


@pytest.mark.parametrize("border", BORDERS)
def test_ended_at_any_border(room, monkeypatch, border):
    once = Once()
    when, _space, what = border.partition(" ")
    if what in ACTS:
        act = next(act for act in carrying._ACTS if act.value == what)
        monkeypatch.setitem(carrying._ACTS, act, once.around(when, carrying._ACTS[act]))
    else:
        monkeypatch.setattr(driver, what, once.around(when, getattr(driver, what), nth=4 if what == "step" else 1))
    goes_on(room, monkeypatch)
    assert once.fired == 1
    one_of_each(room)
