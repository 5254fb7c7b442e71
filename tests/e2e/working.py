"""The worker processes of an installation and its beat, as it starts them, on the tests' database."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.core.cache import cache

from config import pulse
from config.runtime import programs
from config.runtime.children import Program

START_SECONDS = 90.0
STOP_SECONDS = 30.0


@contextmanager
def working(home: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """With beat, the worker that looks at the fleet and the one that waits for others' servers, once they have shown that they work."""
    with ExitStack() as stack:
        for program in (programs.worker(), programs.outside_worker(), programs.beat(home)):
            stack.enter_context(_running(program, environment))
        stack.callback(_forget)
        _wait_for_a_pulse()
        yield


@contextmanager
def _running(program: Program, environment: Mapping[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        program.command, cwd=program.directory, env={**os.environ, **environment, **program.environment}
    )
    try:
        yield
        assert process.poll() is None, f"{program.name} ended"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_a_pulse() -> None:
    began, deadline = time.time(), time.monotonic() + START_SECONDS
    while any((age := pulse.age_seconds(key, began)) is None or age > 0 for key in (pulse.BEAT, pulse.WORKER)):
        assert time.monotonic() < deadline, "the worker shows no sign of life"
        time.sleep(0.2)


def _forget() -> None:
    """To the web process of the tests that come after, they are only starting."""
    cache.delete_many([pulse.BEAT, pulse.WORKER])
