"""Directories as hostile as the servers must stand: long, and below a parent that nobody else may enter."""

from __future__ import annotations

from pathlib import Path

PATH_LENGTH = 150


def long_private_path(base: Path) -> Path:
    """A path of at least PATH_LENGTH characters below a 0700 directory of `base`."""
    private = base / "private"
    private.mkdir(mode=0o700)
    missing = PATH_LENGTH - len(str(private)) - 1
    return private / ("long " + "x" * max(missing, 10))
