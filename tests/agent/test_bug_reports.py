"""The list of other agents' bugs names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE.parents[1] / "docs" / "agent-bug-reports.md"


def test_every_row_names_tests_that_exist() -> None:
    defined = {
        name
        for path in HERE.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    rows = [line for line in LIST.read_text().splitlines() if line.startswith("| [")]
    assert len(rows) >= 35
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= defined, set(named) - defined
