"""Other Pythons on this machine: the agent must run on the oldest that it promises to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FLOOR = "3.9"


@cache
def _found() -> str | None:
    # Version managers install one beside the other
    versions = Path(sys.base_prefix).parent.glob(f"{FLOOR}.*/bin/python")
    candidates = [shutil.which(f"python{FLOOR}"), *sorted(str(path) for path in versions)]
    for path in candidates:
        # A version manager's stand-in is on the path whether or not the version is there
        if path and os.access(path, os.X_OK) and _works(path):
            return path
    return None


def _works(path: str) -> bool:
    code = "import sys, ssl, sqlite3, ctypes; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == FLOOR


def oldest_python() -> str:
    """The interpreter's path; skips the test where there is none."""
    path = _found()
    if path is None:
        pytest.skip(f"no Python {FLOOR} on this machine")
    return path
