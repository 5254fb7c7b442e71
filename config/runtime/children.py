"""What the supervisor watches: a program that we run, or an embedded server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.embedded.server import EmbeddedServer
from config.runtime.console import Console


class Child(ABC):
    """Something with a process that is to be up; start() after an end starts it anew."""

    name: str

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None:
        """End it in order, by force where it does not obey; harmless when it is down."""

    @property
    @abstractmethod
    def process(self) -> subprocess.Popen[bytes] | None:
        """The process, or None where there is none or it is not ours."""

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return self.process.poll() if self.process else None


@dataclass(frozen=True)
class Program:
    """One of our own processes. `environment` is added to ours; `stop_seconds` are for ending after SIGTERM."""

    name: str
    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    stop_seconds: float = 10.0


class ProgramChild(Child):
    def __init__(self, program: Program, console: Console) -> None:
        self.name = program.name
        self.program = program
        self.console = console
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self._process

    def start(self) -> None:
        self._process = process = subprocess.Popen(
            self.program.command,
            cwd=self.program.directory,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.program.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=self.program.pass_fds,
            # A Ctrl-C in the terminal reaches the supervisor alone, which then stops its children in order.
            start_new_session=True,
        )
        assert process.stdout
        self.console.follow(self.name, process.stdout)

    def stop(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self.program.stop_seconds)
        # Also what it left behind: a worker's pool, for one.
        end_group(self._process.pid)
        self._process.wait()


class ServerChild(Child):
    """An embedded server; one that was up before us is used and left alone."""

    def __init__(self, server: EmbeddedServer, console: Console) -> None:
        self.name = server.label.lower()[:8]
        self.server = server
        self.console = console

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self.server.process

    def start(self) -> None:
        reading, writing = os.pipe()
        self.console.follow(self.name, os.fdopen(reading, "rb"))
        self.server.output = writing
        try:
            self.server.start()
        finally:
            os.close(writing)
        if self.server.process is None:
            self.console.say(self.name, f"{self.server.label} is up already; it is used, and left running at the end.")

    def stop(self) -> None:
        self.server.stop()


def end_group(leader: int) -> None:
    """Kill what is left of the process group that `leader` led."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
