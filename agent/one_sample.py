"""One sample outside the main loop: for `--once`, enrolment and the metrics page."""

from __future__ import annotations

import time

from agent import program
from agent.gpu_process import ABSENT, OK, GpuProcess
from agent.host.reader import HostReader
from agent.host.slow import SlowProbes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_START_SECONDS = 60.0
_ANSWER_SECONDS = 12.0


class GpuQuestion:
    """An NVML process of one's own, asked and waited for."""

    def __init__(self) -> None:
        self._process = GpuProcess(program.command("nvml-child"), on_change=lambda *_: None)
        self.driver: dict[str, object] = {}
        self.inventory: list[dict[str, object]] = []
        self.events: list[dict[str, object]] = []
        self._rows: list[dict[str, object]] | None = None

    @property
    def state(self) -> str:
        return self._process.state

    @property
    def detail(self) -> str:
        return self._process.detail

    def start(self) -> bool:
        """False when there is no NVIDIA library, or NVML cannot be used."""
        self._process.tick()
        return (
            self._wait(lambda: self._process.state in (OK, ABSENT) or bool(self._process.detail), _START_SECONDS)
            and self.state == OK
        )

    def sample(self) -> list[dict[str, object]]:
        """GPU rows; empty when none came in time, or there are none."""
        self._rows = None
        self._process.tick()
        self._process.ask()
        self._wait(lambda: self._rows is not None or self.state != OK, _ANSWER_SECONDS)
        return self._rows or []

    def stop(self) -> None:
        self._process.stop(4.0)

    def _wait(self, done: Callable[[], bool], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            for message in self._process.receive(0.1):
                self._take(message)
            self._process.tick()
        return done()

    def _take(self, message: dict[str, object]) -> None:
        hello, inventory, gpus, events = (message.get(name) for name in ("hello", "inventory", "gpus", "events"))
        if isinstance(hello, dict):
            self.driver = hello
        if isinstance(inventory, list):
            self.inventory = inventory
        if isinstance(gpus, list):
            self._rows = gpus
        if isinstance(events, list):
            self.events.extend(events)


def take_sample(apart_seconds: float = 1.0) -> dict[str, object]:
    """Everything the agent knows at this moment; rates come from two reads ``apart_seconds`` apart."""
    slow = SlowProbes()
    slow.refresh_once(time.monotonic())
    host, gpus = HostReader(slow=slow.values), GpuQuestion()
    host.read(time.monotonic())
    try:
        if gpus.start():
            gpus.sample()
        time.sleep(apart_seconds)
        rows = gpus.sample() if gpus.state == OK else []
        sample = {"at": time.time(), "host": host.read(time.monotonic()), "gpus": rows}
        nvml = {"state": gpus.state, "detail": gpus.detail}
    finally:
        gpus.stop()
    return {**sample, "inventory": gpus.inventory, "environment": {**slow.environment(), **gpus.driver}, "nvml": nvml}
