"""Which boot this is."""

from __future__ import annotations

import time
import uuid

from agent.host import files

_made_up: list[str] = []


def boot_id(root: str = "/") -> str:
    """The kernel's boot id; where a container runtime hides it, one that lasts as long as this process."""
    text = (files.read_text_or_none(root + "proc/sys/kernel/random/boot_id") or "").strip()
    if text:
        return text
    if not _made_up:
        _made_up.append(str(uuid.uuid4()))
    return _made_up[0]


def boot_at(root: str = "/") -> float | None:
    """Seconds since the epoch at which the machine started."""
    words = (files.read_text_or_none(root + "proc/uptime") or "").split()
    return round(time.time() - float(words[0]), 0) if words else None
