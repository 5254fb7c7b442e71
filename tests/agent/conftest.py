from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.stub_dashboard import StubDashboard


@pytest.fixture
def dashboard() -> Iterator[StubDashboard]:
    stub = StubDashboard()
    yield stub
    stub.close()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """An empty file tree to put /proc and /sys files into; readers get it as root, with a trailing slash."""
    (tmp_path / "proc").mkdir()
    return tmp_path
