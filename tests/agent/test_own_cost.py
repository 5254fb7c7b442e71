"""The agent's own cost: measured, held down when it grows, and flat over many samples."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import IO

from agent import own_use, program
from agent.own_use import OwnUse
from agent.thrift import Thrift
from tests.agent.nvml_session import running
from tests.fakes.nvml.compiled import CompiledNvml
from tests.fakes.nvml.library import FakeNvml


def test_a_busy_minute_slows_the_agent_down_and_quiet_ones_speed_it_up() -> None:
    thrift = Thrift()
    for _ in range(3):
        thrift.learn(50.0)
    assert thrift.factor == 1
    thrift.learn(50.0)
    assert thrift.factor == 2
    for _ in range(40):
        thrift.learn(50.0)
    assert thrift.factor == 8
    for _ in range(40):
        thrift.learn(0.2)
    assert thrift.factor == 4


def test_one_quiet_reading_between_busy_ones_begins_the_count_anew() -> None:
    thrift = Thrift()
    for cpu_percent in (50.0, 50.0, 50.0, 0.1, 50.0, 50.0, 50.0):
        thrift.learn(cpu_percent)
    assert thrift.factor == 1


def test_a_child_that_was_replaced_makes_no_negative_cost(monkeypatch) -> None:
    use, used = OwnUse(), {1: 10.0, 2: 5.0, 3: 0.1}
    monkeypatch.setattr(own_use, "cpu_seconds", used.get)
    assert "cpu_percent" not in use.read(100.0, [1, 2])
    used[1] = 11.0
    assert use.read(110.0, [1, 2])["cpu_percent"] == 10
    assert "cpu_percent" not in use.read(120.0, [1, 3])


def test_memory_is_told_as_proportional_set_size() -> None:
    assert OwnUse().read(100.0, [os.getpid()])["memory_bytes"] > 1 << 20


def test_the_nvml_process_is_as_small_after_ten_thousand_samples_as_before(tmp_path: Path, monkeypatch) -> None:
    for name, value in CompiledNvml(tmp_path, "h100").environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FAKE_NVML_CONTROL")
    child = subprocess.Popen(program.command("nvml-child"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin as questions, child.stdout as answers:
        assert b"hello" in answers.readline()
        ask(questions, answers, 500)
        before = resident_bytes(child.pid)
        ask(questions, answers, 10_000)
        after = resident_bytes(child.pid)
    assert child.wait(10) == 0
    assert after - before < 256 * 1024


def ask(questions: IO[bytes], answers: IO[bytes], samples: int) -> None:
    for _ in range(samples):
        questions.write(b"{}\n")
        questions.flush()
        assert answers.readline().startswith(b'{"at":')


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_no_program_is_started_to_take_a_sample(monkeypatch) -> None:
    """nvidia-smi costs seconds on machines with several GPUs."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"started {arguments}")

    for name in ("posix_spawn", "fork", "execve"):
        monkeypatch.setattr(os, name, refuse)
    with running(FakeNvml("h100x8")) as session:
        assert len(session.sample()["gpus"]) == 8
    assert "nvidia-smi" not in "".join(path.read_text() for path in Path(own_use.__file__).parent.rglob("*.py"))
