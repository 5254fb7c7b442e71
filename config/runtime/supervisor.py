"""Keeps children up: starts them in order, restarts one that ends, stops them in the opposite order."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from config.runtime.children import Child, end_group
from config.runtime.console import Console

LONGEST_DELAY_SECONDS = 30.0
# A child that ran this long has recovered: its next end counts as the first.
STEADY_SECONDS = 60.0
POLL_SECONDS = 0.2


@dataclass
class Watch:
    """A child with the history that its next restart depends on; times are of the monotonic clock."""

    child: Child
    started_at: float
    failures: int = 0
    restart_at: float | None = None

    def note_end(self, now: float) -> float:
        """Book an end at `now`; returns the delay before the restart: 1, 2, 4, … seconds, at most LONGEST_DELAY_SECONDS."""
        if now - self.started_at >= STEADY_SECONDS:
            self.failures = 0
        delay: float = min(2.0**self.failures, LONGEST_DELAY_SECONDS)
        self.failures += 1
        self.restart_at = now + delay
        return delay


class Supervisor:
    """`on_change` is called whenever the set of running processes changed, so that it can be recorded."""

    def __init__(self, console: Console, on_change: Callable[[list[Child]], None]) -> None:
        self.console = console
        self.on_change = on_change
        self.watches: list[Watch] = []
        self.watching = False
        self.stopping = False

    @property
    def children(self) -> list[Child]:
        return [watch.child for watch in self.watches]

    def handle_signals(self) -> None:
        """SIGTERM, SIGHUP and Ctrl-C ask for an orderly stop while watching; before and after that they interrupt."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if not self.watching or self.stopping:
            raise KeyboardInterrupt
        self.stopping = True

    def start(self, child: Child) -> None:
        """Start `child` and watch it from now on. An error at the first start is the caller's."""
        child.start()
        self.watches.append(Watch(child, time.monotonic()))
        self.on_change(self.children)

    def watch(self, each_round: Callable[[], None] = lambda: None) -> None:
        """Restart what ends, and call `each_round` now and then, until a stop is asked for."""
        self.watching = True
        while not self.stopping:
            self.tend(time.monotonic())
            each_round()
            time.sleep(POLL_SECONDS)

    def tend(self, now: float) -> None:
        """One round: book new ends, and restart what is due."""
        for watch in self.watches:
            if watch.restart_at is not None:
                if now >= watch.restart_at:
                    self._restart(watch, now)
            elif (status := watch.child.exit_status) is not None:
                delay = watch.note_end(now)
                self.console.say(
                    "up", f"{watch.child.name} ended ({describe(status)}); it is started again in {delay:.0f} s."
                )

    def _restart(self, watch: Watch, now: float) -> None:
        try:
            # What the dead one left behind (a pool process holding its port, say) goes first.
            watch.child.stop()
            watch.child.start()
        except (OSError, RuntimeError) as error:
            delay = watch.note_end(now)
            self.console.say("up", f"{watch.child.name} did not start ({error}); next attempt in {delay:.0f} s.")
            return
        watch.started_at, watch.restart_at = now, None
        self.console.say("up", f"{watch.child.name} is started again.")
        self.on_change(self.children)

    def stop_all(self) -> None:
        """Stop the children, the last started first; an interrupt while they end kills those that still run."""
        self.stopping = True
        try:
            for child in reversed(self.children):
                if child.process:
                    self.console.say("up", f"stopping {child.name}")
                child.stop()
        except KeyboardInterrupt:
            self._kill_all()
        self.watches.clear()
        self.on_change([])

    def _kill_all(self) -> None:
        self.console.say("up", "interrupted again: killing what still runs")
        for child in reversed(self.children):
            if child.process:
                end_group(child.process.pid)


def describe(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
