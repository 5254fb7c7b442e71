"""What an embedded PostgreSQL and an embedded Valkey have in common: one home, one private socket, one foreground child."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, ClassVar, Self

from config.embedded.account import (
    Account,
    EmbeddedError,
    kept_secret,
    make_home,
    make_private,
    require_passable,
    server_home,
    service_account,
    socket_directory,
)

START_SECONDS = 60.0
STOP_SECONDS = 30.0
START_ATTEMPTS = 4
RETRY_SECONDS = 0.5
_POLL_SECONDS = 0.05


class _EndedError(EmbeddedError):
    """The child ended before it accepted."""


class EmbeddedServer(ABC):
    """A server on a private socket, started as a foreground child of this process and reused where it already runs.

    `process` is the child, or None while the server is down or was started by somebody else; only a child of ours is stopped by
    stop(). `output` takes the server's log lines; without it they go to a file in the home.
    """

    label: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]

    def __init__(self, data_dir: Path, *, run_dir: Path | None = None, output: IO[bytes] | int | None = None) -> None:
        self.home = server_home(data_dir)
        self.run_dir = run_dir.resolve() if run_dir else socket_directory(self.home)
        self.output = output
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of the server with its password, as a client takes it."""

    @abstractmethod
    def is_accepting(self) -> bool:
        """Whether a client gets an answer on the socket now."""

    @abstractmethod
    def _prepare(self, account: Account) -> None:
        """Make what the first start needs, and clear what a crash left behind."""

    @abstractmethod
    def _command(self) -> list[str]:
        """The command line of the foreground server; no secret may stand in it."""

    def kept_secret(self, name: str) -> str:
        """The server's secret of that name, made at its first use."""
        return kept_secret(make_home(self.home) / name)

    def _is_starting(self) -> bool:
        """Whether a server of somebody else is up but does not accept yet."""
        return False

    def _stdin(self) -> bytes:
        return b""

    def start(self) -> None:
        """Start the server, or find it running, and return once it accepts.

        Raises EmbeddedError when it does not come up within START_SECONDS.
        """
        account = service_account()
        make_home(self.home)
        make_private(self.run_dir, account)
        if not account.is_own:
            require_passable(self.run_dir.parent)
        with self._start_lock():
            if self.is_accepting() or self._is_starting():
                self._wait_until_accepting()
                return
            self._prepare(account)
            try:
                self._launch(account)
            except BaseException:
                self.stop()
                raise

    def _launch(self, account: Account) -> None:
        for attempt in range(1, START_ATTEMPTS + 1):
            self._spawn(account)
            try:
                self._wait_until_accepting()
            except _EndedError:
                if attempt == START_ATTEMPTS:
                    raise
            else:
                return
            # What is left of a predecessor that was killed may still be ending.
            time.sleep(RETRY_SECONDS)

    def stop(self) -> None:
        """End the child that start() made, in order; harmless where there is none."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(self.stop_signal)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()

    def destroy(self) -> None:
        """Stop the server and delete its data and its socket directory."""
        self.stop()
        for directory in (self.run_dir, self.home):
            shutil.rmtree(directory, ignore_errors=True)

    @contextlib.contextmanager
    def _start_lock(self) -> Iterator[None]:
        with (self.home / "start.lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _spawn(self, account: Account) -> None:
        with self._log() as output:
            self.process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A Ctrl-C in the terminal must reach us alone: we stop the servers last, after those that use them.
                start_new_session=True,
                **as_account(account, self.home),
            )
        if self.process.stdin:
            with contextlib.suppress(BrokenPipeError), self.process.stdin as stdin:
                stdin.write(self._stdin())

    @contextlib.contextmanager
    def _log(self) -> Iterator[IO[bytes] | int]:
        if self.output is not None:
            yield self.output
            return
        descriptor = os.open(
            self._log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @property
    def _log_path(self) -> Path:
        return self.home / "server.log"

    def _wait_until_accepting(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.is_accepting():
            if self.process and self.process.poll() is not None:
                raise _EndedError(
                    f"{self.label} ended at once (exit status {self.process.returncode}). {self._last_words()}"
                )
            if time.monotonic() > deadline:
                raise EmbeddedError(f"{self.label} did not answer within {START_SECONDS:.0f} s. {self._last_words()}")
            time.sleep(_POLL_SECONDS)

    def _last_words(self) -> str:
        if self.output is not None or not self._log_path.exists():
            return "Its log lines stand above."
        lines = self._log_path.read_text(errors="replace").splitlines()[-5:]
        return f"Its last log lines, from {self._log_path}:\n" + "\n".join(lines)


def as_account(account: Account, directory: Path) -> dict[str, Any]:
    """Popen arguments that run a program as `account` in `directory`, with nothing of our environment but its language and clock."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    arguments: dict[str, Any] = {"cwd": directory, "env": environment}
    if not account.is_own:
        arguments |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    return arguments
