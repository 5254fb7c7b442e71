"""The script that a new machine runs at its first start. Pure."""

from __future__ import annotations

SHELLS = ("sh", "bash", "dash")


class NotAShellScript(ValueError):
    """Something of another kind, such as cloud-config, which a line of shell cannot be put into."""


def startup_script(own: str, *, install: str = "") -> str:
    """The person's own script with the agent's install line before it: what the script does is then measured already.

    A failing installation does not keep the rest from running. Raises NotAShellScript.
    """
    own = own.replace("\r\n", "\n").strip()
    if not install:
        return f"{own}\n" if own else ""
    first, _, rest = own.partition("\n")
    if not first.startswith("#"):
        return f"#!/bin/sh\n({install}) || true\n{own}\n"
    if not is_shell(first):
        raise NotAShellScript
    return f"{first}\n({install}) || true\n{rest}\n"


def is_shell(first_line: str) -> bool:
    """`#!/bin/sh`, `#!/usr/bin/env bash -e`; `#cloud-config` is none."""
    if not first_line.startswith("#!"):
        return False
    words = [word.rpartition("/")[2] for word in first_line[2:].split()]
    return any(word in SHELLS for word in words[:2])
