"""Telling processes apart: a number alone may be anybody's by the next start."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PROC = Path("/proc")


def command_line(pid: int) -> list[str]:
    """The arguments of process `pid`, empty when there is none (any more)."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return [] if (_PROC / "self").exists() else _ps(pid, "args").split()


def started_at(pid: int) -> str | None:
    """A mark of when `pid` began, only to be compared with another one of the same machine; None when there is no such process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None if (_PROC / "self").exists() else _ps(pid, "lstart") or None
    # The name in parentheses may hold anything; field 3 (state) follows it, field 22 is the start in clock ticks since boot.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{_boot()}:{fields[19]}"


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _ps(pid: int, column: str) -> str:
    done = subprocess.run(["ps", "-o", f"{column}=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()
