"""The one process that may call NVML: hangs, crashes, ends and refusals of the library, and what the supervisor does about each.

With a real libnvidia-ml.so.1 (compiled for the test) in a real child process; only the supervisor's clock is moved by hand.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import gpu_process, program
from agent.gpu_process import ABSENT, ERROR, HUNG, MISMATCH, OK, PAUSED, GpuProcess
from tests.fakes.nvml.compiled import CompiledNvml


@pytest.fixture(scope="module")
def library_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def nvml(library_directory: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledNvml:
    library = CompiledNvml(library_directory, "h100x8")
    for name, value in library.environment.items():
        monkeypatch.setenv(name, value)
    return library


class Driven:
    """A GpuProcess with a clock that a test can push on, and a record of what it said."""

    def __init__(self, command: list[str]) -> None:
        self.skipped = 0.0
        self.changes: list[tuple[str, str]] = []
        self.process = GpuProcess(
            command, on_change=lambda before, state, _: self.changes.append((before, state)), clock=self.clock
        )

    def clock(self) -> float:
        return time.monotonic() + self.skipped

    def until(self, state: str, seconds: float = 20.0) -> None:
        self.wait(lambda: self.process.state == state, seconds)

    def wait(self, condition: Any, seconds: float = 20.0) -> None:
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, f"still {self.process.state}: {self.process.detail}"
            self.process.tick()
            self.process.receive(0.02)

    def sample(self) -> dict[str, Any]:
        self.process.ask()
        messages = self.process.receive(10)
        assert messages, self.process.state
        return messages[0]


@contextlib.contextmanager
def driven(command: list[str] | None = None) -> Iterator[Driven]:
    one = Driven(command or program.command("nvml-child"))
    try:
        yield one
    finally:
        pid = one.process.pid
        one.process.stop(0)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, 9)
            one.wait(lambda: one.process.pid is None)


def test_eight_gpus_are_read_in_a_process_of_its_own(nvml: CompiledNvml) -> None:
    with driven() as one:
        one.until(OK)
        assert one.process.pid not in (None, os.getpid())
        message = one.sample()
        assert [gpu["uuid"] for gpu in message["gpus"]] == nvml.uuids


def test_a_hanging_driver_is_hung_by_the_deadline_and_read_again_when_it_answers(nvml: CompiledNvml) -> None:
    with driven() as one:
        one.until(OK)
        nvml.control("hang nvmlDeviceGetPowerUsage *")
        one.process.ask()
        one.process.tick()
        assert one.process.state == OK
        hung_pid = one.process.pid
        one.skipped += gpu_process.ANSWER_DEADLINE_SECONDS + 1
        one.process.tick()
        assert one.process.state == HUNG
        assert one.process.pid == hung_pid, "it is asked to end before it is killed"
        nvml.control()
        one.skipped += gpu_process.TERM_GRACE_SECONDS + 1
        one.wait(lambda: one.process.pid is None)
        one.skipped += 600
        one.until(OK)
        assert one.process.restarts == 1
        assert (HUNG, OK) in one.changes


def test_a_child_in_a_call_that_cannot_be_killed_is_left_alone(
    nvml: CompiledNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State D cannot be made here: a child whose kill does nothing stands for it."""
    with driven() as one:
        one.until(OK)
        nvml.control("hang nvmlDeviceGetPowerUsage *")
        one.process.ask()
        child = one.process._child
        assert child is not None
        monkeypatch.setattr(child, "kill", lambda: None)
        one.skipped += gpu_process.ANSWER_DEADLINE_SECONDS + 1
        one.process.tick()
        for _ in range(50):
            one.skipped += 100
            one.process.tick()
        assert one.process._child is child, "no second process is started beside a stuck one"
        assert (one.process.state, one.process.restarts) == (HUNG, 0)
        monkeypatch.undo()
        child.kill()
        nvml.control()
        for name, value in nvml.environment.items():
            monkeypatch.setenv(name, value)
        one.wait(lambda: one.process.pid is None)


def test_a_crash_in_the_library_is_survived(nvml: CompiledNvml) -> None:
    with driven() as one:
        one.until(OK)
        nvml.control("crash nvmlDeviceGetTemperature *")
        one.process.ask()
        one.until(ERROR)
        assert "signal 11" in one.process.detail
        nvml.control()
        one.wait(lambda: one.process.pid is None)
        one.skipped += 600
        one.until(OK)
        assert one.sample()["gpus"]


def test_starts_are_spaced_out_while_nothing_works(nvml: CompiledNvml) -> None:
    nvml.control("999 nvmlInitWithFlags *")
    with driven() as one:
        one.until(ERROR)
        assert "must be started again" in one.process.detail
        starts = []
        for _ in range(400):
            before = one.process.restarts
            one.skipped += 1
            one.wait(lambda: one.process.pid is None)
            one.process.tick()
            if one.process.restarts != before:
                starts.append(one.skipped)
        gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
        assert len(starts) < 12
        assert gaps[-1] > gaps[0]


def test_a_library_that_does_not_fit_the_driver_is_a_state_with_advice(nvml: CompiledNvml) -> None:
    nvml.control("18 nvmlInitWithFlags *")
    with driven() as one:
        one.until(MISMATCH)
        assert "reboot" in one.process.detail
        nvml.control()
        one.wait(lambda: one.process.pid is None)
        one.skipped += 600
        one.until(OK)
        assert one.changes[-1] == (MISMATCH, OK)


def test_no_library_is_a_machine_without_gpu_and_seldom_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    with driven() as one:
        one.until(ABSENT)
        one.wait(lambda: one.process.pid is None)
        one.skipped += gpu_process.ABSENT_RETRY_SECONDS / 2
        one.process.tick()
        assert one.process.pid is None


def test_pause_lets_go_of_nvml_and_resume_takes_it_again(nvml: CompiledNvml) -> None:
    with driven() as one:
        one.until(OK)
        pid = one.process.pid
        one.process.pause()
        one.until(PAUSED)
        assert one.process.pid is None
        assert not Path(f"/proc/{pid}").exists()
        one.process.resume()
        one.until(OK)


def test_a_child_ends_with_its_parent(nvml: CompiledNvml) -> None:
    """Whose standard input closes when the parent is killed."""
    child = subprocess.Popen(program.command("nvml-child"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert b"hello" in child.stdout.readline()
    child.stdin.close()
    assert child.wait(10) == 0
    child.stdout.close()


def test_a_child_that_talks_nonsense_is_not_believed() -> None:
    words = [sys.executable, "-c", "print('no json'); print('[1]'); import sys; sys.stdin.read()"]
    with driven(words) as one:
        one.process.tick()
        limit = time.monotonic() + 1
        while time.monotonic() < limit:
            assert one.process.receive(0.05) == []
        assert one.process.state not in (OK, ABSENT)


def test_one_gpu_lost_inside_the_library_is_one_gpu(nvml: CompiledNvml) -> None:
    with driven() as one:
        one.until(OK)
        one.sample()
        victim = nvml.uuids[4]
        nvml.control(f"15 nvmlDeviceGetUtilizationRates {victim}", f"15 nvmlDeviceGetHandleByIndex_v2 {victim}")
        rows = {gpu["uuid"]: gpu for gpu in one.sample()["gpus"]}
        assert rows[victim] == {"uuid": victim, "state": "lost"}
        assert all(row["state"] == "ok" for uuid, row in rows.items() if uuid != victim)


def test_an_xid_arrives_as_an_event(nvml: CompiledNvml) -> None:
    with driven() as one:
        one.until(OK)
        one.sample()
        nvml.control(f"xid 79 {nvml.uuids[2]}")
        event = one.sample()["events"][0]
        assert (event["kind"], event["code"], event["gpu"]) == ("xid", 79, nvml.uuids[2])
        assert one.sample()["events"] == []


@pytest.mark.parametrize(("profile", "rows"), [("h100-mig", 5), ("a100-old-driver", 1), ("rtx4090", 1)])
def test_other_cards_and_drivers_through_the_compiled_library(
    profile: str, rows: int, library_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CompiledNvml(library_directory, profile).environment.items():
        monkeypatch.setenv(name, value)
    with driven() as one:
        one.until(OK)
        assert len(one.sample()["gpus"]) == rows
