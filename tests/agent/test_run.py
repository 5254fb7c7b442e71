"""The real program as processes of its own: enrol, run, report, end."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.stub_dashboard import StubDashboard

REPOSITORY = Path(__file__).parents[2]


def agent(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=check,
        timeout=60,
    )


@pytest.fixture
def settings_file(tmp_path: Path, dashboard: StubDashboard) -> Path:
    path = tmp_path / "agent.json"
    agent("enrol", "--url", dashboard.url, "--token", "rre_team", "--config", str(path), "--state-dir", str(tmp_path))
    return path


def test_enrolment_keeps_the_token_from_other_users(settings_file: Path, dashboard: StubDashboard) -> None:
    assert stat.S_IMODE(settings_file.stat().st_mode) == 0o600
    settings = json.loads(settings_file.read_text())
    assert (settings["token"], settings["instance_id"]) == ("rra_own", 17)
    sent = dashboard.enrolments[0]
    assert dashboard.tokens == ["rre_team"]
    assert sent["hostname"]
    assert sent["machine_id"]
    assert sent["boot_id"]


def test_enrolling_again_keeps_the_machine_id(settings_file: Path, dashboard: StubDashboard, tmp_path: Path) -> None:
    agent(
        "enrol",
        "--url",
        dashboard.url,
        "--token",
        "rre_team",
        "--config",
        str(settings_file),
        "--state-dir",
        str(tmp_path),
    )
    first, second = dashboard.enrolments
    assert first["machine_id"] == second["machine_id"]


def test_refused_enrolment_says_what_to_do_and_writes_nothing(dashboard: StubDashboard, tmp_path: Path) -> None:
    dashboard.enrol_answer = (401, {"error": "bad_token", "detail": "expired"})
    path = tmp_path / "agent.json"
    done = agent("enrol", "--url", dashboard.url, "--token", "rre_old", "--config", str(path), check=False)
    assert done.returncode == 1
    assert "make a new one in the dashboard" in done.stderr
    assert not path.exists()


def test_no_token_goes_unencrypted_to_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    done = agent("enrol", "--url", "http://192.0.2.1", "--token", "rre_x", "--config", str(path), check=False)
    assert done.returncode == 1
    assert "--allow-http" in done.stderr


def test_running_agent_reports_samples_environment_and_heartbeat(
    settings_file: Path, dashboard: StubDashboard, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", "run", "--config", str(settings_file), "--state-dir", str(tmp_path / "state")],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        dashboard.wait_for(lambda: dashboard.samples and dashboard.heartbeats, 30)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors.decode()
    batch, beat = dashboard.samples[0], dashboard.heartbeats[-1]
    assert batch["v"] == 1
    assert batch["seq"] == 1
    assert abs(batch["sent_at"] - batch["samples"][0]["at"]) < 30
    assert any("memory_used_bytes" in sample["host"] for sample in batch["samples"])
    assert {"kind": "agent_started"}.items() <= batch["events"][0].items()
    assert "nvml" not in beat or beat["nvml"]["state"] in ("absent", "ok")
    assert set(dashboard.tokens[1:]) == {"rra_own"}


def test_once_prints_one_sample_as_json() -> None:
    sample = json.loads(agent("--once").stdout)
    assert sample["host"]["memory_total_bytes"] > 0
    assert sample["environment"]["kernel"] == os.uname().release


def test_running_without_enrolment_names_the_remedy(tmp_path: Path) -> None:
    done = agent("run", "--config", str(tmp_path / "none.json"), check=False)
    assert done.returncode == 1
    assert "enrol" in done.stderr
