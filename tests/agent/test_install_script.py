"""The one-line installer, really run: into a directory of its own, against a dashboard on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.stub_dashboard import StubDashboard
from tests.programs import needs

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "agent" / "install.sh"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    target = tmp_path_factory.mktemp("built") / "agent.pyz"
    subprocess.run([sys.executable, "-m", "agent.build", target], cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
    return target.read_bytes()


class Installation:
    def __init__(self, directory: Path, dashboard: StubDashboard, archive: bytes) -> None:
        self.prefix = directory / "prefix"
        self.dashboard = dashboard
        dashboard.archive = archive
        # As the dashboard fills it in before serving it
        text = SCRIPT.read_text().replace("@@PUBLIC_URL@@", dashboard.url)
        self.script = text.replace("@@AGENT_SHA256@@", hashlib.sha256(archive).hexdigest())
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RACKRENT")}

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Piped into sh, as in the documented line."""
        words = ["sh", "-s", "--", "--prefix", str(self.prefix), *options]
        return subprocess.run(
            words, input=self.script, capture_output=True, text=True, check=False, timeout=90, env=self.environment
        )

    @property
    def settings(self) -> dict[str, object]:
        said: dict[str, object] = json.loads((self.prefix / "etc/agent.json").read_text())
        return said


@pytest.fixture
def installation(tmp_path: Path, dashboard: StubDashboard, archive: bytes) -> Iterator[Installation]:
    needs("curl")
    one = Installation(tmp_path, dashboard, archive)
    yield one
    pid_file = one.prefix / "state/agent.pid"
    if pid_file.exists():
        os.kill(int(pid_file.read_text()), signal.SIGTERM)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_script_is_understood_by_every_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", SCRIPT], check=True)


def test_it_installs_enrols_starts_again_and_removes_itself(installation: Installation) -> None:
    done = installation.run("--token", "rre_team")
    assert done.returncode == 0, done.stderr
    assert installation.settings["token"] == "rra_own"
    assert installation.dashboard.tokens[0] == "rre_team"
    installation.dashboard.wait_for(lambda: installation.dashboard.samples, 40)

    first_pid = (installation.prefix / "state/agent.pid").read_text()
    again = installation.run()
    assert again.returncode == 0, again.stderr
    assert "keeping the enrolment" in again.stderr
    assert len(installation.dashboard.enrolments) == 1
    wait_until((installation.prefix / "state/agent.pid").exists)
    second_pid = (installation.prefix / "state/agent.pid").read_text()
    assert second_pid != first_pid
    assert not Path(f"/proc/{first_pid.strip()}").exists()

    gone = installation.run("--uninstall")
    assert gone.returncode == 0, gone.stderr
    assert not Path(f"/proc/{second_pid.strip()}").exists()
    assert [path for path in installation.prefix.rglob("*") if path.is_file()] == []


def test_a_download_with_another_hash_is_not_installed(installation: Installation) -> None:
    installation.dashboard.archive = b"#!/usr/bin/env python3\nprint('not what was announced')\n"
    done = installation.run("--token", "rre_team")
    assert done.returncode == 1
    assert "does not have the hash" in done.stderr
    assert not (installation.prefix / "lib/rackrent-agent.pyz").exists()
    assert installation.dashboard.enrolments == []


def test_a_refused_enrolment_starts_nothing(installation: Installation) -> None:
    installation.dashboard.enrol_answer = (401, {"error": "bad_token"})
    done = installation.run("--token", "rre_old")
    assert done.returncode != 0
    assert "make a new one" in done.stderr
    assert not (installation.prefix / "state/agent.pid").exists()


def test_without_a_token_the_first_time_says_what_to_add(installation: Installation) -> None:
    done = installation.run()
    assert done.returncode == 1
    assert "--token" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--url", "http://198.51.100.1"], "--allow-http"),
        (["--url", "rackrent.example"], "no address"),
        (["--token"], "needs a value"),
        (["--frobnicate"], "unknown option"),
    ],
)
def test_bad_options_are_refused_before_anything_is_done(
    installation: Installation, options: list[str], told: str
) -> None:
    done = installation.run(*options)
    assert done.returncode == 1
    assert told in done.stderr
    assert installation.dashboard.paths == []


def test_a_script_that_was_not_filled_in_asks_for_the_address(installation: Installation) -> None:
    installation.script = SCRIPT.read_text()
    done = installation.run("--token", "rre_x")
    assert done.returncode == 1
    assert "--url" in done.stderr


def test_a_script_that_was_cut_off_does_nothing(installation: Installation) -> None:
    installation.script = installation.script[: len(installation.script) * 3 // 4]
    installation.run("--token", "rre_x")
    assert not installation.prefix.exists()
    assert installation.dashboard.paths == []


def test_the_service_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    functions = SCRIPT.read_text().removesuffix('main "$@"\n')
    unit = tmp_path / "rackrent-agent.service"
    code = f"{functions}\nUNIT={unit} AGENT_USER=root python=/bin/sh program=/x settings=/etc/a.json state=/var/lib/a self_update=yes\nwrite_unit"
    subprocess.run(["sh", "-c", code], check=True)
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    text = unit.read_text()
    assert "ExecStart=/bin/sh /x run --config /etc/a.json --state-dir /var/lib/a --self-update" in text
    assert "RestartPreventExitStatus=78" in text


def test_it_comes_back_while_its_output_is_still_listened_to(installation: Installation) -> None:
    """The agent in the background must not hold the pipe that whoever started the installer reads to the end."""
    done = installation.run("--token", "rre_team")
    assert done.returncode == 0
    wait_until((installation.prefix / "state/agent.pid").exists)
    loop = int((installation.prefix / "state/agent.pid").read_text())
    listed = [str(path.readlink()) for path in Path(f"/proc/{loop}/fd").iterdir() if path.exists()]
    assert not [target for target in listed if target.startswith("pipe:")]
    assert installation.run("--uninstall").returncode == 0


def wait_until(condition, seconds: float = 20.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)
