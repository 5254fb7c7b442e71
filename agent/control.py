"""Between `agent pause`, `agent resume` and the running agent: two small files in the state directory."""

from __future__ import annotations

import contextlib
import json
import os

from agent.settings import write_privately


class Control:
    def __init__(self, state_directory: str) -> None:
        self.pause_file = os.path.join(state_directory, "paused")
        self.status_file = os.path.join(state_directory, "status.json")

    def paused(self) -> bool:
        return os.path.exists(self.pause_file)

    def pause(self) -> None:
        write_privately(self.pause_file, "")

    def resume(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.pause_file)

    def status(self) -> dict[str, object]:
        """What the running agent last said of itself; empty when none runs."""
        try:
            with open(self.status_file, encoding="utf-8") as file:
                status = json.load(file)
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) and _alive(status.get("pid")) else {}


_written: dict[str, dict[str, object]] = {}


def write_status(path: str, status: dict[str, object]) -> None:
    """Only when it changed: the disk is not ours to wear out. A full disk must not end the agent."""
    if _written.get(path) == status:
        return
    with contextlib.suppress(OSError):
        write_privately(path, json.dumps(status))
        _written[path] = status


def _alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
