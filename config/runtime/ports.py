"""The listening socket of the web process, and who has it when we cannot."""

from __future__ import annotations

import contextlib
import errno
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

from config.embedded.processes import command_line

_LISTEN_STATE = "0A"


class PortError(RuntimeError):
    """The address cannot be listened on; the text says why and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A bound TCP socket; listening starts with the web process, but nobody else can take the port from now on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server((host.strip("[]"), port), family=family, backlog=1024, dualstack_ipv6=both)
    except OSError as error:
        raise PortError(_reason(error, host, port)) from error


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken by {holder(port)}. Stop it, or choose another port: RACKRENT_PORT={port + 1} make run"
    if error.errno == errno.EACCES:
        return f"Port {port} needs privileges. Choose one above 1023 (RACKRENT_PORT) and put a reverse proxy in front."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"This machine has no address {host}. Set RACKRENT_HOST to one of its addresses, or to 0.0.0.0 for all of them."
    return f"Cannot listen on {host}:{port}: {error.strerror or error}. See RACKRENT_HOST and RACKRENT_PORT."


def holder(port: int) -> str:
    """Who listens on the TCP port, in words."""
    for inode, uid in _listeners(port):
        pid = _owner_of(inode)
        if pid is not None:
            return f"process {pid} ({' '.join(command_line(pid)).strip()[:120]})"
        return f"a process of user {_user_name(uid)}"
    return "another process"


def _listeners(port: int) -> Iterator[tuple[str, int]]:
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with contextlib.suppress(FileNotFoundError):
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN_STATE and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9], int(fields[7])


def _owner_of(inode: str) -> int | None:
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _has_socket(process, inode):
            return int(process.name)
    return None


def _has_socket(process: Path, inode: str) -> bool:
    # Other users' processes do not show their files, and a process may end while we look.
    with contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if str(descriptor.readlink()) == f"socket:[{inode}]":
                    return True
    return False


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
