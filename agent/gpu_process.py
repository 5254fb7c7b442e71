"""The supervisor's side of the one process that may call NVML: asked, timed, ended and begun again, never waited for."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import time

from agent.backoff import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Message = dict[str, object]

log = logging.getLogger("rackrent.gpu")

# nvmlInit brings GPUs up one after the other where persistence mode is off: several seconds with 8 of them
START_DEADLINE_SECONDS = 60.0
ANSWER_DEADLINE_SECONDS = 10.0
TERM_GRACE_SECONDS = 3.0
# A machine without NVIDIA library may get one; asking costs a process start
ABSENT_RETRY_SECONDS = 600.0
FIRST_RETRY_SECONDS = 5.0
_MOST_LINE_BYTES = 4 << 20

OK, ABSENT, HUNG, MISMATCH, ERROR, PAUSED = "ok", "absent", "hung", "mismatch", "error", "paused"
_STARTING = "starting"


class GpuProcess:
    """States: starting, ok, absent, hung, mismatch, error, paused (those but the first are the protocol's).

    ``tick`` moves time on; nothing here blocks. A child that does not answer is asked to end, then killed; one that even a
    kill does not end (a driver call in state D) is left alone, and no second one is started beside it.
    """

    def __init__(
        self,
        command: list[str],
        *,
        on_change: Callable[[str, str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._clock = clock
        self._on_change = on_change
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._deadline: float | None = None
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._next_start = 0.0
        self._backoff = Backoff(first_seconds=FIRST_RETRY_SECONDS, most_seconds=300)
        self._wanted = True
        self._quiet = False
        self.state = _STARTING
        self.detail = ""
        self.since = time.time()
        self.restarts = -1

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    @property
    def ready(self) -> bool:
        """Whether a question may be asked now."""
        return self.state == OK and self._child is not None and self._deadline is None and self._term_at is None

    def tick(self) -> None:
        now = self._clock()
        self._reap(now)
        if self._child is not None:
            self._enforce_deadlines(now)
        elif self._wanted and now >= self._next_start:
            self._start(now)

    def ask(self) -> None:
        """One sample, please; its answer comes out of ``receive``."""
        if self.ready and self._write(b'{"ask":"sample"}\n'):
            self._deadline = self._clock() + ANSWER_DEADLINE_SECONDS

    def receive(self, timeout_seconds: float) -> list[Message]:
        """Samples that arrived within the time; an empty list is no error."""
        until = self._clock() + timeout_seconds
        messages: list[Message] = []
        while self._child is not None and not messages:
            if not self._readable(max(0.0, until - self._clock())):
                break
            data = os.read(_descriptor(self._child), 1 << 16)
            if not data:
                # End of file: the child is on its way out, and tick will say how it went
                self._deadline = self._clock() + TERM_GRACE_SECONDS
                break
            messages = self._taken(data)
        return messages

    def pause(self) -> None:
        """Let go of NVML: an open client blocks GPU resets and MIG changes."""
        self._wanted = False
        if self._child is not None and self._term_at is None:
            self._close_input(self._clock())
        if self._child is None:
            self._change(PAUSED, "paused on request")

    def resume(self) -> None:
        if not self._wanted:
            self._wanted, self._next_start = True, 0.0
            self._change(_STARTING, "")

    def stop(self, timeout_seconds: float) -> None:
        """For the end of the supervisor: the same steps, in a bounded time, without a word about it."""
        self._on_change, self._quiet = _nobody, True
        self.pause()
        until = self._clock() + timeout_seconds
        while self._child is not None and self._clock() < until:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(0.05)
            self.tick()

    def _start(self, now: float) -> None:
        # No shell; the command is this program's own
        self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=True)
        os.set_blocking(_descriptor(self._child), False)
        self._buffer, self._term_at, self._kill_at = b"", None, None
        self._deadline = now + START_DEADLINE_SECONDS
        self.restarts += 1

    def _reap(self, now: float) -> None:
        if self._child is None or self._child.poll() is None:
            return
        self._drain()
        code = self._child.returncode
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._child = None
        if not self._wanted:
            self._change(PAUSED, "paused on request")
        elif self.state in (OK, _STARTING):
            how = f"signal {-code}" if code < 0 else f"status {code}"
            self._change(ERROR, f"the NVML process ended with {how}")
        wait = ABSENT_RETRY_SECONDS if self.state == ABSENT else self._backoff.next_seconds()
        self._next_start = now + wait

    def _enforce_deadlines(self, now: float) -> None:
        child = self._child
        if child is None or self._kill_at is not None:
            return
        if self._term_at is not None:
            if now >= self._term_at + TERM_GRACE_SECONDS:
                self._kill_at = now
                child.kill()
        elif self._deadline is not None and now >= self._deadline:
            self._change(HUNG, "the driver does not answer: NVML has been in one call for too long")
            self._term_at = now
            child.send_signal(signal.SIGTERM)

    def _close_input(self, now: float) -> None:
        """The child reads end of file, shuts NVML down and ends; if it does not, the same ladder as for a hung one."""
        self._term_at = now
        child = self._child
        if child is not None and child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()
            child.send_signal(signal.SIGTERM)

    def _write(self, line: bytes) -> bool:
        child = self._child
        try:
            if child is None or child.stdin is None:
                return False
            child.stdin.write(line)
            child.stdin.flush()
        except OSError:
            return False
        return True

    def _readable(self, timeout_seconds: float) -> bool:
        child = self._child
        return child is not None and bool(select.select([_descriptor(child)], [], [], timeout_seconds)[0])

    def _drain(self) -> None:
        """A child that ended may have said why."""
        with contextlib.suppress(OSError):
            while self._child is not None and (data := os.read(_descriptor(self._child), 1 << 16)):
                self._taken(data)

    def _taken(self, data: bytes) -> list[Message]:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > _MOST_LINE_BYTES:
            self._buffer = b""
        return [message for line in lines if (message := self._understood(line)) is not None]

    def _understood(self, line: bytes) -> Message | None:
        try:
            message = json.loads(line)
        except ValueError:
            return None
        if not isinstance(message, dict):
            return None
        if self._term_at is None:
            self._deadline = None
        if "failed" in message:
            self._change(str(message["failed"]), str(message.get("detail", "")))
            return None
        if self._term_at is None:
            self._backoff.reset()
            self._change(OK, str(message.get("detail", "")))
        return message

    def _change(self, state: str, detail: str) -> None:
        before = self.state
        self.detail = detail
        if state != before:
            self.state, self.since = state, time.time()
            if not self._quiet:
                log.info("NVML: %s%s", state, f" ({detail})" if detail else "")
            self._on_change(before, state, detail)


def _descriptor(child: subprocess.Popen[bytes]) -> int:
    if child.stdout is None:
        raise ValueError("the NVML process was started without a pipe")
    return child.stdout.fileno()


def _nobody(_before: str, _state: str, _detail: str) -> None:
    """Hears of changes when nobody else wants to."""
