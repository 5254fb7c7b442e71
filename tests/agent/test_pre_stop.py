"""The machine's own pre-stop file: run only where it is root's alone, bounded, and with nothing of the dashboard in it.

These make files that belong to root and to others, in directories that only root may write: that takes root.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.actions import child
from agent.actions.pre_stop import run_pre_stop

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="files of root and of others can only be made by root: run as root"
)

NOBODY = 65534


@pytest.fixture
def directory() -> Iterator[Path]:
    """Like /etc/rackrent: below directories that nobody but root may write, which the usual places for tests are not."""
    path = Path(tempfile.mkdtemp(prefix="rackrent-test-", dir="/opt"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def hook(directory: Path) -> Path:
    return written(directory / "pre-stop", 'echo "saved as $RACKRENT_ACTION_ID"')


def written(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def run(path: Path, timeout_seconds: float = 20, stopping=lambda: False):
    return run_pre_stop(str(path), action_id=5, timeout_seconds=timeout_seconds, stopping=stopping)


def test_a_file_of_root_runs_and_its_last_words_are_told(hook: Path) -> None:
    assert run(hook) == ("done", {"exit_code": 0, "output": "saved as 5\n", "timed_out": False}, "")


def test_a_status_is_a_failure_with_its_number(directory: Path) -> None:
    state, result, detail = run(written(directory / "pre-stop", "echo broken >&2; exit 3"))
    assert (state, result["exit_code"], result["output"]) == ("failed", 3, "broken\n")
    assert detail == "it ended with status 3"


def test_it_sees_nothing_of_the_agents_environment_and_no_input(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKRENT_ENROL_TOKEN", "rre_secret")
    _, result, _ = run(written(directory / "pre-stop", "tr '\\0' '\\n' </proc/self/environ; echo args $#; wc -c; pwd"))
    lines = str(result["output"]).split()
    assert [line for line in lines if "=" in line and not line.startswith(("PWD=", "_=", "OLDPWD=", "SHLVL="))] == [
        "RACKRENT_ACTION_ID=5"
    ]
    assert lines[-4:] == ["args", "0", "0", "/"]


def test_only_the_last_500_characters_are_kept_and_none_that_steer_a_terminal(directory: Path) -> None:
    _, result, _ = run(written(directory / "pre-stop", "yes 0123456789 | head -c 900000; printf '\\033[31mend'"))
    assert len(str(result["output"])) == 500
    assert str(result["output"]).endswith("\ufffd[31mend")


@pytest.mark.parametrize(
    ("mode", "told"), [(0o775, "written by others"), (0o757, "written by others"), (0o644, "cannot be started")]
)
def test_a_file_that_others_may_write_or_nobody_may_run_is_not_run(hook: Path, mode: int, told: str) -> None:
    hook.chmod(mode)
    state, result, detail = run(hook)
    assert (state, result) == ("failed", {})
    assert told in detail


def test_a_file_of_somebody_else_is_not_run(hook: Path) -> None:
    os.chown(hook, NOBODY, 0)
    state, _, detail = run(hook)
    assert state == "failed"
    assert f"belongs to user {NOBODY}" in detail


@pytest.mark.parametrize("change", ["owner", "mode"])
def test_a_directory_above_it_that_others_could_change_is_not_trusted(directory: Path, change: str) -> None:
    inner = directory / "etc"
    inner.mkdir(mode=0o755)
    hook = written(inner / "pre-stop", "echo ran")
    if change == "owner":
        os.chown(directory, NOBODY, NOBODY)
    else:
        directory.chmod(0o777)
    state, result, detail = run(hook)
    assert (state, result) == ("failed", {})
    assert str(directory) in detail


def test_the_usual_place_for_temporary_files_is_not_trusted(tmp_path: Path) -> None:
    assert run(written(tmp_path / "pre-stop", "echo ran"))[0] == "failed"


def test_links_directories_and_pipes_are_not_run(directory: Path, hook: Path) -> None:
    (directory / "link").symlink_to(hook)
    (directory / "folder").mkdir()
    os.mkfifo(directory / "pipe", 0o755)
    for name, told in (
        ("link", "is a link"),
        ("folder", "no regular file"),
        ("pipe", "no regular file"),
        ("none", "looked at"),
    ):
        state, _, detail = run(directory / name)
        assert state == "failed"
        assert told in detail


def test_one_that_takes_too_long_is_ended_with_all_that_it_started(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "TERM_GRACE_SECONDS", 0.3)
    noted = directory / "pids"
    script = f"trap '' TERM\nsh -c 'trap \"\" TERM; echo $$ >>{noted}; while :; do sleep 1; done' &\necho $$ >>{noted}\nwait\nwhile :; do sleep 1; done"
    began = time.monotonic()
    state, result, detail = run(written(directory / "pre-stop", script), timeout_seconds=1)
    assert state == "failed"
    assert result["timed_out"] is True
    assert "not ended after 1 s" in detail
    assert time.monotonic() - began < 15
    pids = [int(line) for line in noted.read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if is_running(pid)]


def is_running(pid: int) -> bool:
    """Killed is not yet waited for: the group's orphans are somebody else's to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_it_leaves_in_the_background_is_not_waited_for(directory: Path) -> None:
    began = time.monotonic()
    state, result, _ = run(written(directory / "pre-stop", "sleep 30 &\necho $!"))
    assert state == "done"
    assert time.monotonic() - began < 15
    os.kill(int(str(result["output"])), 9)


def test_an_agent_that_stops_ends_it(directory: Path) -> None:
    state, _, detail = run(written(directory / "pre-stop", "sleep 30"), stopping=lambda: True)
    assert (state, detail) == ("failed", "the agent was stopped while it ran")
