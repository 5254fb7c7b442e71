"""``pre_stop``: the machine's own file /etc/rackrent/pre-stop, run before the machine is stopped. Who wrote it was root there."""

from __future__ import annotations

import os
import stat

from agent.actions.child import Ended, run_child
from agent.actions.record import DONE, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Outcome = tuple[str, dict[str, object], str]

PATH = "/etc/rackrent/pre-stop"
DEFAULT_TIMEOUT_SECONDS = 300
TIMEOUT_RANGE = (5, 3600)
_KEPT_CHARACTERS = 500
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UnsafeError(Exception):
    """Somebody else than root could have written what would be run."""


def is_there(path: str) -> bool:
    return os.path.lexists(path)


def check_owner(path: str) -> None:
    """Raises UnsafeError unless the file and every directory above it are root's and nobody else's to write."""
    if os.path.realpath(path) != path:
        raise UnsafeError(f"{path} is a link, or lies behind one: put the file itself there")
    _check(path, stat.S_ISREG, "no regular file")
    directory = os.path.dirname(path)
    while True:
        _check(directory, stat.S_ISDIR, "no directory")
        if directory == "/":
            return
        directory = os.path.dirname(directory)


def _check(path: str, is_kind: Callable[[int], bool], otherwise: str) -> None:
    try:
        found = os.lstat(path)
    except OSError as error:
        raise UnsafeError(f"{path} cannot be looked at: {error.strerror}") from error
    if not is_kind(found.st_mode):
        raise UnsafeError(f"{path} is {otherwise}")
    if found.st_uid != 0:
        raise UnsafeError(f"{path} belongs to user {found.st_uid}, not to root: chown root {path}")
    if found.st_mode & _OTHERS_MAY_WRITE:
        raise UnsafeError(f"{path} can be written by others than root: chmod go-w {path}")


def run_pre_stop(path: str, *, action_id: int, timeout_seconds: float, stopping: Callable[[], bool]) -> Outcome:
    """The state, what is reported, and why where it failed."""
    try:
        check_owner(path)
        ended = run_child(
            [path],
            environment={"RACKRENT_ACTION_ID": str(action_id)},
            timeout_seconds=timeout_seconds,
            kept_bytes=_KEPT_CHARACTERS * 4,
            stopping=stopping,
        )
    except UnsafeError as error:
        return FAILED, {}, str(error)
    except OSError as error:
        return FAILED, {}, f"{path} cannot be started: {error.strerror}"
    result: dict[str, object] = {
        "exit_code": ended.code,
        "output": _printable(ended.output),
        "timed_out": ended.timed_out,
    }
    return (DONE if ended.code == 0 else FAILED), result, _said(ended, timeout_seconds)


def _said(ended: Ended, timeout_seconds: float) -> str:
    if ended.timed_out:
        return f"it had not ended after {timeout_seconds:.0f} s and was ended"
    if ended.stopped:
        return "the agent was stopped while it ran"
    if ended.code < 0:
        return f"it was ended by signal {-ended.code}"
    return f"it ended with status {ended.code}" if ended.code else ""


def _printable(output: bytes) -> str:
    text = output.decode("utf-8", "replace")[-_KEPT_CHARACTERS:]
    return "".join(letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text)
