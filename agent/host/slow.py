"""What costs too much for every sample, or may wait for others: refreshed in the background, left out when old."""

from __future__ import annotations

import logging
import threading
import time

from agent.host import filesystems, jupyter
from agent.host.environment import environment
from agent.host.sessions import ProcessScan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("rackrent.probes")

REFRESH_SECONDS = 30.0
_ENVIRONMENT_SECONDS = 600.0
# A value that was not refreshed for so long says nothing of now: a probe hangs, or the thread does
FRESH_SECONDS = 75.0


class _Probe(threading.Thread):
    """One source in one thread: a network file system that hangs takes only its own figures with it."""

    def __init__(self, name: str, read: Callable[[], dict[str, object]], every_seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self._read = read
        self._every = every_seconds
        self._latest: tuple[float, dict[str, object]] = (float("-inf"), {})

    def run(self) -> None:
        while True:
            self.refresh(time.monotonic())
            time.sleep(self._every)

    def refresh(self, now: float) -> None:
        try:
            self._latest = (now, self._read())
        except (OSError, ValueError, LookupError) as error:
            log.warning("%s: %s", self.name, error)

    def values(self, now: float, fresh_seconds: float) -> dict[str, object]:
        read_at, values = self._latest
        return values if now - read_at <= fresh_seconds else {}


class SlowProbes:
    def __init__(self, root: str = "/") -> None:
        scan = ProcessScan(root)
        self._local = _Probe("local file systems", lambda: _local_filesystems(root), REFRESH_SECONDS)
        self._sessions = _Probe("sessions", lambda: {**scan.read(), **jupyter.activity(root)}, REFRESH_SECONDS)
        self._network = _Probe(
            "network file systems", lambda: {"network": filesystems.rows(root, filesystems.NETWORK)}, REFRESH_SECONDS
        )
        self._environment = _Probe("environment", lambda: environment(root), _ENVIRONMENT_SECONDS)
        self._root = root

    def start(self) -> None:
        for probe in (self._local, self._sessions, self._environment):
            probe.start()
        if filesystems.mounts(self._root, filesystems.NETWORK):
            self._network.start()

    def refresh_once(self, now: float) -> None:
        """In the caller's thread, for a single sample. Network file systems are left out: they may hang."""
        for probe in (self._local, self._sessions, self._environment):
            probe.refresh(now)

    def values(self, now: float) -> dict[str, object]:
        """Host sample fields that are fresh at ``now`` (monotonic)."""
        values = {**self._local.values(now, FRESH_SECONDS), **self._sessions.values(now, FRESH_SECONDS)}
        remote = self._network.values(now, FRESH_SECONDS).get("network")
        rows = values.get("filesystems")
        if isinstance(rows, list) and isinstance(remote, list):
            values["filesystems"] = [*rows, *remote]
        return values

    def environment(self) -> dict[str, object]:
        return self._environment.values(time.monotonic(), 10 * _ENVIRONMENT_SECONDS)


def _local_filesystems(root: str) -> dict[str, object]:
    return {"filesystems": filesystems.rows(root, filesystems.LOCAL), **filesystems.root_usage(root)}
