"""Who is on the machine: SSH sessions and Jupyter kernels, by their processes."""

from __future__ import annotations

import os
import re

from agent.host import files

# What sshd calls its process once somebody is signed in: "sshd: ada@pts/0", since OpenSSH 9.8 "sshd-session: ada@notty"
_SESSION = re.compile(r"^sshd(-session)?: [^@\[]+@(pts/\d+|tty\w*|notty|internal-sftp)")
_SSHD, _KERNEL, _OTHER = "sshd", "kernel", "other"
# Process ids are used again: what was learned of them is forgotten after so many scans
_SCANS_UNTIL_FORGOTTEN = 20


class ProcessScan:
    """Reads a process's command line once in its life, except that of an sshd, which changes its name."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._kinds: dict[str, str] = {}
        self._scans = 0

    def read(self) -> dict[str, object]:
        """Empty where processes are hidden from us (hidepid): none seen is not none there."""
        if not os.path.exists(self._root + "proc/1/stat"):
            return {}
        self._scans += 1
        if self._scans % _SCANS_UNTIL_FORGOTTEN == 0:
            self._kinds.clear()
        alive = [name for name in os.listdir(self._root + "proc") if name.isdigit()]
        self._kinds = {pid: self._kinds.get(pid) or self._kind(pid) for pid in alive}
        daemons = [pid for pid, kind in self._kinds.items() if kind == _SSHD]
        sessions = sum(1 for pid in daemons if _SESSION.match(self._command_line(pid)))
        return {"ssh_sessions": sessions, "jupyter_kernels": sum(1 for kind in self._kinds.values() if kind == _KERNEL)}

    def _kind(self, pid: str) -> str:
        line = self._command_line(pid)
        if line.startswith(("sshd:", "sshd-session:")) or "/sshd" in line.split(" ", 1)[0]:
            return _SSHD
        return _KERNEL if "ipykernel_launcher" in line or "ipykernel" in line.split(" ") else _OTHER

    def _command_line(self, pid: str) -> str:
        """Empty for kernel threads and for a process that just ended."""
        return (files.read_text_or_none(f"{self._root}proc/{pid}/cmdline") or "").replace("\0", " ").strip()
