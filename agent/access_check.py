"""Could a new process use NVML? A container that lost its devices keeps working for those who had them open, and for no one else."""

from __future__ import annotations

import json
import logging
import subprocess

log = logging.getLogger("rackrent.gpu")

EVERY_SECONDS = 3600.0
_DEADLINE_SECONDS = 90.0


class AccessCheck:
    """Starts a short process now and then, while the lasting one is well. ``trouble`` says what a new process would meet."""

    def __init__(self, command: list[str], now: float) -> None:
        self._command = command
        self._next = now + EVERY_SECONDS
        self._child: subprocess.Popen[bytes] | None = None
        self._deadline = 0.0
        self.trouble = ""

    def tick(self, now: float, *, nvml_ok: bool) -> None:
        """Never waits. One that hangs is ended, and no other begun before it is gone."""
        if self._child is None:
            if nvml_ok and now >= self._next:
                self._begin(now)
        elif self._child.poll() is not None:
            self._finish(now)
        elif now >= self._deadline:
            self._child.terminate()
            self._deadline = now + _DEADLINE_SECONDS

    def stop(self) -> None:
        if self._child is not None:
            self._child.terminate()

    def _begin(self, now: float) -> None:
        self._child = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self._deadline = now + _DEADLINE_SECONDS

    def _finish(self, now: float) -> None:
        child, self._child = self._child, None
        self._next = now + EVERY_SECONDS
        if child is None or child.stdout is None:
            return
        with child.stdout as pipe:
            said = _understood(pipe.read(1 << 16))
        before, self.trouble = self.trouble, _trouble(said)
        if self.trouble and not before:
            log.warning(self.trouble)


def _understood(output: bytes) -> dict[str, object]:
    try:
        said = json.loads(output.splitlines()[0])
    except (ValueError, IndexError):
        return {"detail": "it said nothing"}
    return said if isinstance(said, dict) else {}


def _trouble(said: dict[str, object]) -> str:
    if isinstance(said.get("count"), int):
        return ""
    return (
        f"a new process cannot use the GPUs any more ({said.get('detail', '')}): restart the container or the machine"[
            :200
        ]
    )
