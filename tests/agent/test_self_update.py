"""Newer versions: only when asked for, only upwards, only with the announced hash, only if they run here."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from agent import __version__
from agent.self_update import UpdateError, Updater, newer
from agent.transport import Dashboard, TransportError
from tests.agent.stub_dashboard import StubDashboard

OLD = b"#!/usr/bin/env python3\nprint('old')\n"
NEW = b"import sys\nprint('9.9.9')\n"


class Target:
    def __init__(self, directory: Path, dashboard: StubDashboard) -> None:
        self.path = directory / "agent.pyz"
        self.path.write_bytes(OLD)
        self.installed: list[bool] = []
        self.updater = Updater(
            str(self.path), lambda: Dashboard(dashboard.url, "rra_own"), lambda: self.installed.append(True)
        )

    def offer(self, version: object, digest: object) -> None:
        self.updater.consider({"agent_version": version, "agent_sha256": digest})
        if self.updater._thread is not None:
            self.updater._thread.join(60)


@pytest.fixture
def target(tmp_path: Path, dashboard: StubDashboard) -> Target:
    return Target(tmp_path, dashboard)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_newer_version_with_the_announced_hash_replaces_the_file(target: Target, dashboard: StubDashboard) -> None:
    dashboard.archive = NEW
    target.offer("9.9.9", digest(NEW))
    assert target.path.read_bytes() == NEW
    assert target.installed == [True]


@pytest.mark.parametrize(
    ("version", "announced"),
    [
        (__version__, digest(NEW)),
        ("0.0.1", digest(NEW)),
        ("9.9.9", digest(b"another file")),
        ("9.9.8", digest(NEW)),
        ("9.9.9", "nonsense"),
        ("9.9.9; reboot", digest(NEW)),
        (None, digest(NEW)),
        ("9.9.9", None),
    ],
)
def test_anything_else_changes_nothing(
    target: Target, dashboard: StubDashboard, version: object, announced: object
) -> None:
    dashboard.archive = NEW
    target.offer(version, announced)
    assert target.path.read_bytes() == OLD
    assert target.installed == []
    assert list(target.path.parent.glob("agent.pyz.new")) == []


def test_a_file_that_does_not_run_here_is_not_installed(target: Target, dashboard: StubDashboard) -> None:
    dashboard.archive = b"this is no Python"
    with pytest.raises(UpdateError, match="does not start"):
        target.updater.install("9.9.9", digest(dashboard.archive))
    assert target.path.read_bytes() == OLD


def test_an_offer_is_tried_once(target: Target, dashboard: StubDashboard) -> None:
    dashboard.archive = b"broken"
    for _ in range(3):
        target.offer("9.9.9", digest(b"announced"))
    assert len([path for path in dashboard.paths if path.endswith(".pyz")]) == 1


def test_a_dashboard_that_is_away_costs_nothing(target: Target, dashboard: StubDashboard) -> None:
    dashboard.close()
    with pytest.raises(TransportError):
        target.updater.install("9.9.9", digest(NEW))
    assert target.path.read_bytes() == OLD


@pytest.mark.parametrize(
    ("version", "than", "answer"), [("0.10.0", "0.9.0", True), ("0.9.0", "0.10.0", False), ("1.0", "1.0", False)]
)
def test_versions_are_numbers_not_text(version: str, than: str, answer: bool) -> None:
    assert newer(version, than) is answer


def test_without_the_option_no_version_is_even_looked_at(tmp_path: Path) -> None:
    """The supervisor has no updater unless it was started with --self-update."""
    code = "from agent import supervise; import sys; sys.exit('agent.self_update' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0
    from agent.settings import Settings
    from agent.supervisor import Supervisor

    settings = Settings(url="http://127.0.0.1:9", token="t", instance_id=1, machine_id="m")
    one = Supervisor(settings, Dashboard("http://127.0.0.1:9", "t"), str(tmp_path))
    assert one.updater is None
    one.obey({"agent_version": "9.9.9", "agent_sha256": digest(NEW)})
    one._outbox.close()
