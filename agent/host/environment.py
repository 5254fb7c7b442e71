"""What does not change while the machine runs, or seldom: told once, and again on change."""

from __future__ import annotations

import os
import pwd
import socket

from agent import __version__
from agent.host import files
from agent.host.boot import boot_at, boot_id
from agent.host.container import container_kind
from agent.host.memory import meminfo_bytes
from agent.host.packages import versions
from agent.host.provider_ids import provider_ids


def environment(root: str = "/") -> dict[str, object]:
    """The protocol's ``environment`` but for the driver's versions, which the NVML process knows."""
    system = os.uname()
    facts: dict[str, object] = {
        "hostname": socket.gethostname(),
        "os": _operating_system(root),
        "kernel": system.release,
        "architecture": system.machine,
        "container": container_kind(root),
        "cpu_model": _cpu_model(root),
        "cpu_count": os.cpu_count(),
        "memory_total_bytes": _memory_total(root),
        "boot_id": boot_id(root),
        "boot_at": boot_at(root),
        "agent_version": __version__,
        "agent_user": _user(),
        "provider_ids": provider_ids(root),
        **versions(root),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", {})}


def _operating_system(root: str) -> str | None:
    for line in (files.read_text_or_none(root + "etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return None


def _cpu_model(root: str) -> str | None:
    for line in (files.read_text_or_none(root + "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return None


def _memory_total(root: str) -> int | None:
    try:
        return meminfo_bytes(root).get("MemTotal")
    except OSError:
        return None


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
