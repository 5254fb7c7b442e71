"""A program of this machine, run once: bounded in time, with all that it started, and heard only at its end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_SECONDS = 0.2
TERM_GRACE_SECONDS = 5.0


class Ended:
    """``code`` is negative for a signal, as in subprocess; ``output`` holds the last bytes of both outputs."""

    __slots__ = ("code", "output", "stopped", "timed_out")

    def __init__(self, code: int, output: bytes, *, timed_out: bool, stopped: bool) -> None:
        self.code = code
        self.output = output
        self.timed_out = timed_out
        self.stopped = stopped


def run_child(
    command: list[str],
    *,
    environment: dict[str, str],
    timeout_seconds: float,
    kept_bytes: int,
    stopping: Callable[[], bool],
    errors: int | None = subprocess.STDOUT,
) -> Ended:
    """Blocks until the program ended or was ended. Raises OSError where it cannot be started.

    It leads a process group of its own: what it started goes with it when its time is over. What it leaves behind at an
    end of its own is its business (a copy that goes on in the background), and is not waited for.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
        cwd="/",
        start_new_session=True,
    )
    until = time.monotonic() + timeout_seconds
    tail = _Tail(child, kept_bytes)
    while child.poll() is None and time.monotonic() < until and not stopping():
        tail.read(_LOOK_SECONDS)
    timed_out = stopped = False
    if child.poll() is None:
        stopped, timed_out = stopping(), not stopping()
        _end_group(child, tail)
    tail.drain()
    return Ended(_status(child), tail.close(), timed_out=timed_out, stopped=stopped)


def _status(child: subprocess.Popen[bytes]) -> int:
    """One that hangs in a driver's call does not end even when it is killed: it is left alone."""
    try:
        return child.wait(TERM_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL


class _Tail:
    """The last bytes that come out of a pipe, which somebody else may keep open."""

    def __init__(self, child: subprocess.Popen[bytes], kept_bytes: int) -> None:
        if child.stdout is None:
            raise ValueError("the program was started without a pipe")
        self._pipe = child.stdout
        self._kept = kept_bytes
        self._data = b""
        self._open = True
        os.set_blocking(self._pipe.fileno(), False)

    def read(self, seconds: float) -> bool:
        """Wait so long for something; whether there may be more at once."""
        if not self._open:
            time.sleep(seconds)
            return False
        if not select.select([self._pipe], [], [], seconds)[0]:
            return False
        data = os.read(self._pipe.fileno(), 1 << 16)
        self._open = bool(data)
        self._data = (self._data + data)[-self._kept :]
        return self._open

    def drain(self) -> None:
        """What is there already, and no more than a bounded part of what an endless writer sends."""
        for _ in range(64):
            if not self.read(0.0):
                return

    def close(self) -> bytes:
        self._pipe.close()
        return self._data


def _end_group(child: subprocess.Popen[bytes], tail: _Tail) -> None:
    """Asked, then killed: the whole group, of which the leader is still ours to wait for, so that its number is nobody else's."""
    _signal_group(child.pid, signal.SIGTERM)
    until = time.monotonic() + TERM_GRACE_SECONDS
    while not _has_ended(child.pid) and time.monotonic() < until:
        tail.read(_LOOK_SECONDS)
    _signal_group(child.pid, signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    """Without taking its number out of use, which `poll` does."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
