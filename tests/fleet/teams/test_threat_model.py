"""The threat model names the test of each defence; a name that leads nowhere would be a defence nobody tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs/threat-model.md").read_text())))


def test_it_names_tests():
    assert len(NAMED) > 10


@pytest.mark.parametrize("path", NAMED)
def test_each_is_there(path):
    assert "def test_" in (ROOT / path).read_text()
