"""Takes up what a dashboard asks for: only names of this list, each id once, in time, not too often, and one of a kind at a time."""

from __future__ import annotations

import logging
import threading
import time

from agent.actions import pre_stop
from agent.actions.record import FAILED, Record, RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Outcome = tuple[str, dict[str, object], str]

log = logging.getLogger("rackrent.actions")

ACCEPT, PRE_STOP = "accept", "pre_stop"
NAMES = (ACCEPT, PRE_STOP)
# A dashboard that was taken over must not keep a machine busy
_MOST_AN_HOUR = {ACCEPT: 4, PRE_STOP: 12}
_MOST_AT_ONCE = 4
_HOUR_SECONDS = 3600.0
_ACCEPT_SECONDS, _ACCEPT_SECONDS_RANGE = 120, (20, 300)


class Desk:
    """``allowed``: names from the settings file; None = whatever this machine has. ``wake`` has the reports sent.

    ``paused`` says whether NVML is to be left alone: then nothing is tested. ``accept``: run_accept with the agent's own files.
    """

    def __init__(
        self,
        record: Record,
        *,
        allowed: list[str] | None,
        wake: Callable[[], None],
        paused: Callable[[], bool],
        accept: Callable[..., Outcome],
        pre_stop_path: str | None = None,
    ) -> None:
        self._record = record
        self._allowed = NAMES if allowed is None else tuple(name for name in NAMES if name in allowed)
        self._wake = wake
        self._paused = paused
        self._accept = accept
        self._pre_stop_path = pre_stop_path or pre_stop.PATH
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._stopping = threading.Event()
        if record.trouble:
            log.warning(record.trouble)

    def offered(self) -> list[str]:
        """What a dashboard may ask for now."""
        if self._record.trouble:
            return []
        return [name for name in self._allowed if self._can(name)]

    def _can(self, name: str) -> bool:
        return pre_stop.is_there(self._pre_stop_path) if name == PRE_STOP else not self._paused()

    def take(self, asked: object, server_time: object) -> None:
        """``asked``: what the answer to a heartbeat holds under "actions". Anything that is not of its form is not read."""
        for one in asked[:_MOST_AT_ONCE] if isinstance(asked, list) else []:
            if isinstance(one, dict) and _is_whole(one.get("id")) and isinstance(one.get("name"), str):
                self._take_one(one, server_time if isinstance(server_time, (int, float)) else time.time())

    def reports(self) -> list[dict[str, object]]:
        with self._lock:
            return self._record.untold()

    def told(self, report: dict[str, object]) -> None:
        with self._lock:
            self._record.told(int(str(report["id"])), report["state"])

    @property
    def busy(self) -> bool:
        return any(thread.is_alive() for thread in list(self._threads.values()))

    def stop(self, timeout_seconds: float) -> None:
        """End what runs, so that its end can still be noted down."""
        self._stopping.set()
        until = time.monotonic() + timeout_seconds
        for thread in list(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def _take_one(self, one: dict[str, object], server_time: float) -> None:
        action_id, name, now = int(str(one["id"])), str(one["name"])[:40], time.time()
        with self._lock:
            if self._stopping.is_set() or self._record.knows(action_id):
                return
            try:
                why_not = self._why_not(name, one.get("expires_at"), server_time, now)
                if why_not:
                    log.warning("action %d (%.40s) is not run: %s", action_id, name, why_not)
                    self._record.refuse(action_id, name, now, why_not)
                elif not self._is_running(name):
                    self._record.begin(action_id, name, now)
                    self._begin(action_id, name, one.get("options"))
            except RecordError as error:
                # Not run and not told: the dashboard hears nothing of it, and in time counts it as not answered
                log.warning("action %d (%.40s) is not run: %s", action_id, name, error)
        self._wake()

    def _why_not(self, name: str, expires_at: object, server_time: float, now: float) -> str:
        if name not in NAMES:
            return f"this agent has no action {name!r}"
        if name not in self.offered():
            return f"{name} is switched off on this machine, paused, or there is nothing to run"
        # Both times are the dashboard's, so that a clock that is wrong here does not matter
        if not (isinstance(expires_at, (int, float)) and expires_at > server_time):
            return "it came too late"
        if self._record.begun_since(name, now - _HOUR_SECONDS) >= _MOST_AN_HOUR[name]:
            return f"{name} was asked for too often: {_MOST_AN_HOUR[name]} times within the hour"
        return ""

    def _is_running(self, name: str) -> bool:
        return name in self._threads and self._threads[name].is_alive()

    def _begin(self, action_id: int, name: str, options: object) -> None:
        log.info("action %d: %s begins", action_id, name)
        given = options if isinstance(options, dict) else {}
        thread = threading.Thread(target=self._run, args=(action_id, name, given), name=name, daemon=True)
        self._threads[name] = thread
        thread.start()

    def _run(self, action_id: int, name: str, options: dict[str, object]) -> None:
        try:
            state, result, detail = self._outcome(action_id, name, options)
        except Exception as error:  # whatever it is, the dashboard hears of it, and the agent goes on
            log.exception("action %d failed", action_id)
            state, result, detail = FAILED, {}, f"{type(error).__name__}: {error}"[:300]
        log.info("action %d: %s ended: %s %s", action_id, name, state, detail)
        with self._lock:
            self._record.end(action_id, state, result, detail)
        self._wake()

    def _outcome(self, action_id: int, name: str, options: dict[str, object]) -> Outcome:
        if name == ACCEPT:
            return self._accept(
                seconds=whole_within(options.get("most_seconds"), _ACCEPT_SECONDS_RANGE, _ACCEPT_SECONDS),
                when_busy=options.get("when_busy") is True,
                stopping=lambda: self._stopping.is_set() or self._paused() or self._is_running(PRE_STOP),
            )
        timeout = whole_within(options.get("timeout_seconds"), pre_stop.TIMEOUT_RANGE, pre_stop.DEFAULT_TIMEOUT_SECONDS)
        return pre_stop.run_pre_stop(
            self._pre_stop_path, action_id=action_id, timeout_seconds=timeout, stopping=self._stopping.is_set
        )


def whole_within(value: object, limits: tuple[int, int], otherwise: int) -> int:
    """A whole number out of an answer, within limits that stand here."""
    return min(max(int(str(value)), limits[0]), limits[1]) if _is_whole(value) else otherwise


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
