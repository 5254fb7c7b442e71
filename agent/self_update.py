"""Installing the version that the dashboard serves: only where this machine's owner asked for it, only newer, only if the hash fits."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import subprocess
import sys
import threading

from agent import __version__
from agent.transport import TransportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.transport import Dashboard

log = logging.getLogger("rackrent.update")

PATH = "/agent/rackrent-agent.pyz"
_MOST_BYTES = 16 << 20
_HASH = re.compile(r"^[0-9a-f]{64}$")
_VERSION = re.compile(r"^\d{1,4}(\.\d{1,4}){1,3}$")


class UpdateError(Exception):
    """The offered version is not installed; the message says why."""


class Updater:
    """``archive`` is the zipapp in use; ``installed`` is called once when another one has taken its place."""

    def __init__(self, archive: str, connect: Callable[[], Dashboard], installed: Callable[[], None]) -> None:
        self._archive = archive
        self._connect = connect
        self._installed = installed
        self._tried: set[str] = set()
        self._thread: threading.Thread | None = None

    def consider(self, config: dict[str, object]) -> None:
        """Begin to install, in the background, what this ``config`` offers; each offer is tried once."""
        version, digest = config.get("agent_version"), config.get("agent_sha256")
        if not isinstance(version, str) or not isinstance(digest, str) or digest in self._tried:
            return
        if not _HASH.match(digest) or not newer(version, __version__) or (self._thread and self._thread.is_alive()):
            return
        self._tried.add(digest)
        self._thread = threading.Thread(target=self._run, args=(version, digest), name="update", daemon=True)
        self._thread.start()

    def _run(self, version: str, digest: str) -> None:
        try:
            self.install(version, digest)
        except (UpdateError, TransportError, OSError) as error:
            log.warning("version %s is not installed: %s", version, error)
        else:
            log.info("version %s is installed", version)
            self._installed()

    def install(self, version: str, digest: str) -> None:
        """Download, check, try out, then replace the archive in one step. Raises UpdateError, TransportError, OSError."""
        dashboard = self._connect()
        try:
            answer, data = dashboard.get(PATH, most_bytes=_MOST_BYTES, timeout_seconds=60)
        finally:
            dashboard.close()
        if answer.status != 200:
            raise UpdateError(f"the dashboard answered {answer.status}")
        if hashlib.sha256(data).hexdigest() != digest:
            raise UpdateError("what was downloaded does not have the hash that was announced")
        temporary = f"{self._archive}.new"
        with open(temporary, "wb") as file:
            file.write(data)
        try:
            os.chmod(temporary, 0o755)  # noqa: S103  # a program that others may start, as the old one was
            _try_out(temporary, version)
            os.replace(temporary, self._archive)
        except BaseException:
            os.unlink(temporary)
            raise


def newer(version: str, than: str) -> bool:
    """Whether ``version`` is a number above ``than``; never true for anything that is no version."""
    if not _VERSION.match(version):
        return False
    return _parts(version) > _parts(than)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _try_out(path: str, version: str) -> None:
    """A file that this machine's Python cannot run must not replace one that it can."""
    done = subprocess.run(
        [sys.executable, "-I", path, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0 or done.stdout.strip() != version:
        raise UpdateError("it does not start on this machine, or is another version than announced")
