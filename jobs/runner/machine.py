"""One machine's part of a job over SSH: prepare, launch once, look, read the log, stop. No Django, no database.

Everything is done by one fixed script (on_machine.sh) that gets names and numbers as arguments; what people typed is in files that it never reads. It
answers in lines of name=value. Each call is bounded in time and in what it takes in.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import shlex
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import asyncssh

from jobs.book.names import MARKER
from jobs.nodes import on_nodes

CALL_SECONDS = 30.0
UPLOAD_SECONDS = 300.0
# A driver that hangs is waited for three times at most.
FACTS_SECONDS = 60.0
# The others may come later, and they send to each other (jobs/nodes/meeting.py).
MEET_SECONDS = 60.0
# Of an answer that is no log.
ANSWER_BYTES = 64 * 1024
READ_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
Signal = Literal["TERM", "INT", "KILL"]


class RunnerError(Exception):
    """`code`: timeout, broken, refused (the script says no), no_shell (the machine runs no commands), bad_answer."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, printable(detail[:300])


def printable(text: str) -> str:
    """What a machine said, without what a database or a terminal would take for something else."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the machine says of the job. `exit_code` None: it has not ended, or nobody wrote how. `rebooted`: since it was launched."""

    launched: bool
    alive: bool
    exit_code: int | None
    log_size: int
    pid: int | None
    boot_id: str
    rebooted: bool
    # Of install.sh, where there is one.
    installing: bool = False
    install_code: int | None = None

    @property
    def is_lost(self) -> bool:
        """It was launched, does not run, and did not say how it ended: killed with its keeper, or the machine began anew."""
        return self.launched and not self.alive and self.exit_code is None

    @property
    def is_nowhere(self) -> bool:
        """The machine knows nothing of it: it was never launched there, or its directory is gone."""
        return not self.launched and not self.alive and self.exit_code is None


@dataclass(frozen=True, slots=True)
class SentFile:
    """`path`: relative to the job's directory."""

    path: str
    data: bytes
    executable: bool = False


def environment_file(values: Mapping[str, str]) -> bytes:
    """Read by the machine's shell, then removed: secrets do not stay on its disk. Raises ValueError for what is no name."""
    lines = []
    for name, value in values.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ValueError(f"{name!r} is no name of an environment variable")
        lines.append(f"{name}={shlex.quote(value)}")
    return ("\n".join(lines) + "\n").encode()


def packed(files: Iterable[SentFile]) -> bytes:
    """A tar of the files. Raises ValueError for a path that leads out of the job's directory."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for file in files:
            path = PurePosixPath(file.path)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ValueError(f"{file.path!r} leads out of the job's directory")
            entry = tarfile.TarInfo(str(path))
            entry.size, entry.mode = len(file.data), 0o700 if file.executable else 0o600
            tar.addfile(entry, io.BytesIO(file.data))
    return made.getvalue()


@cache
def nodes_program() -> bytes:
    return Path(on_nodes.__file__).read_bytes()


@cache
def script() -> str:
    return (Path(__file__).parent / "on_machine.sh").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Machine:
    """A connection and the job's marker. Every method raises RunnerError."""

    connection: asyncssh.SSHClientConnection
    marker: str

    def __post_init__(self) -> None:
        if not MARKER.fullmatch(self.marker):
            raise ValueError(f"{self.marker!r} marks no job")

    async def prepare(self, files: Iterable[SentFile]) -> None:
        """Again is the same again: files of the same name are written over."""
        answer = await self._ask("prepare", given=packed(files), seconds=UPLOAD_SECONDS)
        _must(answer, "prepared")

    async def facts(self) -> dict[str, str]:
        """What the machine is, as it says itself: jobs.plans.facts reads it."""
        return await self._ask("facts", seconds=FACTS_SECONDS)

    async def install(self, digest: str) -> None:
        """Starts install.sh, detached, unless it was started before. `digest`: of its text."""
        _must(await self._ask("install", digest), "installs")

    async def unpack(self, packed: bytes) -> None:
        """Files that were sent for the job, before those of its launcher are written beside them."""
        _must(await self._ask("unpack", given=packed, seconds=UPLOAD_SECONDS), "unpacked")

    async def launch(self) -> bool:
        """Starts the command, detached. False: it was started before; it is never started twice."""
        return _must(await self._ask("launch"), "launched") == "now"

    async def look(self) -> Seen:
        answer = await self._ask("look")
        boot = printable(answer.get("boot", ""))[:64]
        return Seen(
            launched="launched" in answer,
            alive="alive" in answer,
            exit_code=_whole(answer.get("exit"), most=255),
            log_size=_whole(answer.get("size")) or 0,
            pid=_whole(answer.get("pid"), most=2**31 - 1),
            boot_id=boot,
            rebooted=bool(boot) and boot != _must(answer, "now_boot"),
            installing="installing" in answer,
            install_code=_whole(answer.get("installed")),
        )

    async def read_log(self, offset: int, most: int = READ_BYTES) -> bytes:
        return await self._run("read", str(int(offset)), str(int(most)), most=most)

    async def signal(self, name: Signal) -> int:
        """To every process of the job. Returns how many there were."""
        return _whole(_must(await self._ask("signal", name), "signalled")) or 0

    async def interfaces(self) -> list[str]:
        """`name address prefix speed`, one each (jobs/nodes/addresses.py); empty where it has no Python to ask."""
        answer = (await self._run("nodes", "interfaces", given=nodes_program())).decode("utf-8", "replace")
        return [line.removeprefix("interface=") for line in answer.splitlines() if line.startswith("interface=")]

    async def meet(self, order: Mapping[str, Any]) -> dict[str, str]:
        """What it says of the way to the others (jobs/nodes/meeting.py), who are asked at the same time."""
        return await self._ask("nodes", "meet", json.dumps(order), given=nodes_program(), seconds=MEET_SECONDS)

    async def memory(self) -> int | None:
        """Bytes that belong to the job's processes alone; None where none runs, or the machine does not say."""
        answer = await self._ask("memory")
        _must(answer, "looked")
        return _whole(answer.get("memory"))

    async def forget(self) -> None:
        """Removes the job's directory, when it has ended."""
        _must(await self._ask("forget"), "forgotten")

    async def _ask(
        self, act: str, *arguments: str, given: bytes = b"", seconds: float = CALL_SECONDS
    ) -> dict[str, str]:
        text = (await self._run(act, *arguments, given=given, seconds=seconds)).decode("utf-8", "replace")
        answer = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if "error" in answer:
            raise RunnerError("refused", answer["error"])
        return answer

    async def _run(
        self, act: str, *arguments: str, given: bytes = b"", seconds: float = CALL_SECONDS, most: int = ANSWER_BYTES
    ) -> bytes:
        command = shlex.join(["sh", "-c", script(), "rackrent", act, self.marker, *arguments])
        try:
            async with asyncio.timeout(seconds):
                process = await self.connection.create_process(command, encoding=None)
                return await _exchange(process, given, most)
        except TimeoutError:
            raise RunnerError("timeout", act) from None
        except asyncssh.ChannelOpenError as error:
            raise RunnerError("no_shell", error.reason) from None
        except (asyncssh.Error, OSError) as error:
            raise RunnerError("broken", type(error).__name__) from None


async def _exchange(process: asyncssh.SSHClientProcess[bytes], given: bytes, most: int) -> bytes:
    """Writes and reads side by side, so that neither waits for the other; what is beyond `most` ends it."""
    try:
        _written, said, complaints = await asyncio.gather(
            _give(process, given),
            _take(process, process.stdout, most),
            _take(process, process.stderr, ANSWER_BYTES),
        )
        done = await process.wait(check=False)
    finally:
        process.close()
    if done.exit_status not in {0, None} and not said:
        raise RunnerError(
            "refused",
            complaints.decode("utf-8", "replace").strip().splitlines()[-1]
            if complaints.strip()
            else f"exit {done.exit_status}",
        )
    return said


async def _give(process: asyncssh.SSHClientProcess[bytes], given: bytes) -> None:
    for begin in range(0, len(given), READ_BYTES):
        process.stdin.write(given[begin : begin + READ_BYTES])
        await process.stdin.drain()
    process.stdin.write_eof()


async def _take(process: asyncssh.SSHClientProcess[bytes], stream: asyncssh.SSHReader[bytes], most: int) -> bytes:
    taken = bytearray()
    while len(taken) < most and (part := await stream.read(min(65_536, most - len(taken)))):
        taken += part
    if len(taken) >= most:
        # Whoever says more is not listened to, and must not be waited for.
        process.close()
    return bytes(taken)


def _must(answer: Mapping[str, str], name: str) -> str:
    if name not in answer:
        raise RunnerError("bad_answer", name)
    return answer[name]


def _whole(text: str | None, *, most: int = 10**15) -> int | None:
    """Whatever is no such number was not said: a machine may say anything."""
    if text is None or not re.fullmatch(r"[0-9]{1,18}", text.strip()):
        return None
    return int(text) if int(text) <= most else None
