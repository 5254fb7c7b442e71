"""Whose a process is: the name of its user where the machine's own list has one, else the number."""

from __future__ import annotations

import os
from functools import lru_cache

from agent.host.files import read_text_or_none


def user_of(pid: int, root: str = "/") -> str | None:
    """None for a process that is gone or hidden. A directory service is not asked: it may not answer, and samples must not wait for it."""
    for line in (read_text_or_none(f"{root}proc/{pid}/status") or "").splitlines():
        if line.startswith("Uid:"):
            uid = line.split()[1]
            return _names(root).get(uid, uid)
    return None


def _names(root: str) -> dict[str, str]:
    path = root + "etc/passwd"
    try:
        found = os.stat(path)
    except OSError:
        return {}
    return _read_names(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _read_names(path: str, _changed_ns: int, _size: int) -> dict[str, str]:
    """Names by user id; the first line of a number counts, as it does for the C library."""
    names: dict[str, str] = {}
    for line in (read_text_or_none(path) or "").splitlines():
        parts = line.split(":")
        if len(parts) > 2 and parts[0]:
            names.setdefault(parts[2], parts[0])
    return names
