"""Runs /etc/rackrent/pre-stop over SSH: three fixed commands, of which nothing depends on what anybody typed.

The file and every directory above it must be root's and nobody else's to write: what runs before a stop is written by whoever owns the
machine, and never by this server. No Django.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncssh

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, open_ssh
from fleet.telemetry.scrape.through_ssh import SshRoute

PATH = "/etc/rackrent/pre-stop"
IS_THERE = f"test -e {PATH} || test -L {PATH}"
WHOSE = f"LC_ALL=C stat -c '%u %a %F' / /etc /etc/rackrent {PATH}"
RUN = f"{PATH} </dev/null 2>&1"
# It may print what it wants; its end is kept.
KEPT_BYTES = 4_096
CHUNK_BYTES = 16_384
OTHERS_MAY_WRITE = 0o022
SHORT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Ran:
    """`code`: "" where it ran and ended well, "none" where there is no such file, else a key of words.FAILURES. `output`: its last bytes, as text."""

    code: str = ""
    exit_code: int | None = None
    output: str = ""

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in lines[-1]) if lines else ""


async def run_over_ssh(route: SshRoute, *, guard: Guard, timeout_seconds: float) -> Ran:
    """Raises nothing: what goes wrong is its code."""
    try:
        async with (
            asyncio.timeout(timeout_seconds),
            open_ssh(route.address, guard=guard, private_key=route.private_key, pinned=route.pinned) as connection,
        ):
            return await _look_and_run(connection)
    except TimeoutError:
        return Ran("no_end")
    except RefusedAddressError:
        return Ran("address_refused")
    except RemoteError as error:
        return Ran(f"ssh_{error.code}")
    except (asyncssh.Error, OSError):
        return Ran("ssh_broken")


async def _look_and_run(connection: asyncssh.SSHClientConnection) -> Ran:
    async with asyncio.timeout(SHORT_SECONDS):
        there, _output = await _said(connection, IS_THERE)
        if there == 1:
            return Ran("none")
        if there != 0:
            return Ran("not_looked_at")
        status, listed = await _said(connection, WHOSE)
    if status != 0 or not is_roots_alone(listed):
        return Ran("unsafe_file")
    status, output = await _said(connection, RUN)
    return Ran("" if status == 0 else "said_no", status, output)


def is_roots_alone(listed: str) -> bool:
    """What `stat` printed of the three directories and the file: owner 0, a mode in which nobody else writes, and of the right kind."""
    lines = listed.strip().splitlines()
    kinds = ("directory", "directory", "directory", "regular file")
    return len(lines) == len(kinds) and all(_is_safe(line, kind) for line, kind in zip(lines, kinds, strict=True))


def _is_safe(line: str, kind: str) -> bool:
    owner, _, rest = line.partition(" ")
    mode, _, found = rest.partition(" ")
    try:
        return owner == "0" and not int(mode, 8) & OTHERS_MAY_WRITE and found == kind
    except ValueError:
        return False


async def _said(connection: asyncssh.SSHClientConnection, command: str) -> tuple[int | None, str]:
    """The exit status, None where a signal ended it, and the last of what was printed."""
    kept = b""
    async with connection.create_process(command, encoding=None, stdin=asyncssh.DEVNULL) as process:
        while chunk := await process.stdout.read(CHUNK_BYTES):
            kept = (kept + chunk)[-KEPT_BYTES:]
        await process.wait_closed()
        return process.exit_status if process.exit_signal is None else None, kept.decode(errors="replace")
