"""The nginx of the gateways: found, given its configuration when that has changed, started, and ended. It runs under the account that is given."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Daemons lie where only root's PATH leads.
PLACES = "/usr/sbin:/usr/local/sbin:/sbin:/opt/homebrew/bin"
STOP_SECONDS, TEST_SECONDS = 10.0, 20.0


def find_nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path=PLACES)


@dataclass
class Nginx:
    """`account`: (uid, gid) where it is not ours."""

    program: str
    directory: Path
    account: tuple[int, int] | None = None
    text: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def serve(self, text: str) -> str:
        """With this configuration from now on. Returns what nginx says against it, and then goes on with the one before; "" = nothing."""
        if text == self.text and self.runs:
            return ""
        path = self._write("next.conf", text)
        if problem := self._refuses(path):
            return problem
        path.replace(self.directory / "nginx.conf")
        if self.process is not None and self.runs:
            self.process.send_signal(signal.SIGHUP)
        else:
            self._start()
        self.text = text
        return ""

    def stop(self) -> None:
        """Requests that are under way are cut: who stops the gateway knows it."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        (self.directory / "inner.sock").unlink(missing_ok=True)

    def _write(self, name: str, text: str) -> Path:
        """It may hold a server's key: for this account alone."""
        path = self.directory / name
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        if self.account is not None:
            os.chown(path, *self.account)
        return path

    def _refuses(self, path: Path) -> str:
        done = subprocess.run(
            [*self._words(path), "-t"], capture_output=True, text=True, check=False, timeout=TEST_SECONDS, **self._as()
        )
        return "" if done.returncode == 0 else done.stderr.strip()[-1_000:] or "?"

    def _start(self) -> None:
        (self.directory / "inner.sock").unlink(missing_ok=True)
        words = self._words(self.directory / "nginx.conf")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **self._as())

    def _words(self, path: Path) -> list[str]:
        return [self.program, "-p", str(self.directory), "-c", str(path), "-e", "stderr"]

    def _as(self) -> dict[str, Any]:
        """With nothing of our environment, which holds secrets."""
        arguments: dict[str, Any] = {"cwd": self.directory, "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}}
        if self.account is not None:
            arguments |= {"user": self.account[0], "group": self.account[1], "extra_groups": []}
        return arguments
