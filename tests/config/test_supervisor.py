from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config.embedded.processes import started_at
from config.runtime.children import Child, Program, ProgramChild
from config.runtime.console import Console
from config.runtime.supervisor import STEADY_SECONDS, Supervisor, Watch, describe

SLEEPER = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
WITH_GRANDCHILD = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print('grandchild', child.pid, flush=True); " + SLEEPER
)


@pytest.fixture
def console() -> Console:
    return Console(io.StringIO())


@pytest.fixture
def supervisor(console: Console):
    recorded: list[list[int]] = []
    supervisor = Supervisor(
        console, lambda children: recorded.append([child.process.pid for child in children if child.process])
    )
    supervisor.recorded = recorded  # type: ignore[attr-defined]
    yield supervisor
    supervisor.stop_all()


def program(name: str, code: str, *, stop_seconds: float = 10) -> Program:
    return Program(name, [sys.executable, "-c", code], Path.cwd(), stop_seconds=stop_seconds)


def lines(console: Console) -> str:
    assert isinstance(console.stream, io.StringIO)
    return console.stream.getvalue()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def end_of(child: Child) -> int:
    assert child.process
    return child.process.wait(20)


class TestRestart:
    def test_a_child_that_ends_is_started_again_and_said_so(self, supervisor: Supervisor, console: Console):
        child = ProgramChild(program("web", "raise SystemExit(3)"), console)
        supervisor.start(child)
        end_of(child)
        first = child.process
        now = time.monotonic()
        supervisor.tend(now)
        assert "web ended (exit status 3); it is started again in 1 s." in lines(console)
        supervisor.tend(now + 0.5)
        assert child.process is first
        supervisor.tend(now + 1)
        assert child.process is not first
        assert "web is started again." in lines(console)

    def test_the_delay_grows_to_a_limit_and_begins_anew_after_a_steady_time(self):
        watch = Watch(child=None, started_at=0.0)  # type: ignore[arg-type]
        assert [watch.note_end(now=1.0) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
        assert watch.note_end(now=STEADY_SECONDS) == 1

    def test_one_that_cannot_be_started_again_is_tried_later(self, supervisor: Supervisor, console: Console):
        child = ProgramChild(program("web", "raise SystemExit(3)"), console)
        supervisor.start(child)
        end_of(child)
        now = time.monotonic()
        supervisor.tend(now)
        child.program = Program("web", ["/nonexistent"], Path.cwd())
        supervisor.tend(now + 1)
        assert "web did not start" in lines(console)
        assert "next attempt in 2 s" in lines(console)

    def test_the_new_process_is_recorded(self, supervisor: Supervisor, console: Console):
        child = ProgramChild(program("web", "raise SystemExit(3)"), console)
        supervisor.start(child)
        end_of(child)
        now = time.monotonic()
        supervisor.tend(now)
        supervisor.tend(now + 1)
        assert child.process
        assert supervisor.recorded[-1] == [child.process.pid]  # type: ignore[attr-defined]


class TestStop:
    def test_the_last_started_stops_first(self, supervisor: Supervisor, console: Console):
        for name in ("database", "web", "worker"):
            supervisor.start(ProgramChild(program(name, SLEEPER), console))
        supervisor.stop_all()
        said = lines(console)
        assert said.index("stopping worker") < said.index("stopping web") < said.index("stopping database")
        assert supervisor.recorded[-1] == []  # type: ignore[attr-defined]

    def test_one_that_ignores_the_request_is_killed(self, supervisor: Supervisor, console: Console):
        child = ProgramChild(program("web", STUBBORN, stop_seconds=0.2), console)
        supervisor.start(child)
        wait_for(lambda: "ready" in lines(console))
        supervisor.stop_all()
        assert child.exit_status == -9

    def test_what_a_child_started_ends_with_it(self, supervisor: Supervisor, console: Console):
        child = ProgramChild(program("worker", WITH_GRANDCHILD), console)
        supervisor.start(child)
        wait_for(lambda: "ready" in lines(console))
        grandchild = int(lines(console).split("grandchild ")[1].split()[0])
        supervisor.stop_all()
        wait_for(lambda: started_at(grandchild) is None)

    def test_watching_ends_when_a_stop_is_asked_for(self, supervisor: Supervisor, console: Console):
        def ask() -> None:
            supervisor._on_signal(15, None)

        supervisor.watch(each_round=ask)
        assert supervisor.stopping

    def test_a_signal_before_that_interrupts(self, supervisor: Supervisor):
        with pytest.raises(KeyboardInterrupt):
            supervisor._on_signal(15, None)


class TestLogLines:
    def test_each_stands_behind_the_name_of_its_process(self, console: Console):
        console.say("web", "one\ntwo")
        assert lines(console) == "web      | one\nweb      | two\n"

    def test_no_control_character_reaches_the_terminal(self, console: Console):
        console.say("web", "GPU \x1b]0;owned\x07 \x9b2J\tname")
        assert lines(console) == "web      | GPU �]0;owned� �2J\tname\n"

    def test_bytes_that_are_no_text_are_shown_as_such(self, console: Console):
        with subprocess.Popen([sys.executable, "-c", "import os; os.write(1, b'\\xff\\xfe\\n')"], stdout=-1) as process:
            assert process.stdout
            console.follow("web", process.stdout).join()
        assert lines(console) == "web      | ��\n"

    def test_they_are_coloured_on_a_terminal_only(self, monkeypatch: pytest.MonkeyPatch):
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.delenv("NO_COLOR", raising=False)
        console = Console(Terminal())
        console.say("web", "one")
        assert lines(console) == "\x1b[36mweb      |\x1b[0m one\n"
        monkeypatch.setenv("NO_COLOR", "1")
        assert not Console(Terminal()).coloured


def test_an_exit_is_described():
    assert describe(-9) == "killed by SIGKILL"
    assert describe(2) == "exit status 2"
