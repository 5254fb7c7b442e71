"""Real outputs that lie beside the repository on some machines; tests that read one skip where it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

CAPTURES = Path(__file__).parents[3] / "shared" / "exporters"


def capture(name: str) -> str:
    """The text of one capture."""
    path = CAPTURES / name
    if not path.exists():
        pytest.skip(f"../shared/exporters/{name} is not on this machine")
    return path.read_text()
