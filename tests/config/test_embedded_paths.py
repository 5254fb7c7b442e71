"""Directories with names that mean something to a configuration file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded import EmbeddedPostgres, EmbeddedValkey

NAME = "an odd, \\ 'quoted' name"


@pytest.fixture
def odd_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rackrent-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        directory = Path(name) / NAME
        monkeypatch.setenv("RACKRENT_DATA_DIR", str(directory))
        yield directory


@pytest.mark.parametrize("kind", [EmbeddedPostgres, EmbeddedValkey])
def test_servers_run_in_them(odd_directory: Path, kind: type[EmbeddedPostgres | EmbeddedValkey]):
    server = kind(odd_directory / "server")
    try:
        server.start()
        assert server.home == odd_directory / "server"
        assert server.is_accepting()
    finally:
        server.destroy()
