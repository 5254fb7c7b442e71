"""A container that lost its devices: whoever had NVML open goes on, a new process cannot, and somebody is told."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from agent import access_check, program
from agent.access_check import AccessCheck
from tests.fakes.nvml.compiled import CompiledNvml


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledNvml:
    library = CompiledNvml(tmp_path, "h100")
    for name, value in library.environment.items():
        monkeypatch.setenv(name, value)
    return library


def checked(check: AccessCheck, now: float) -> str:
    """Begin a check at ``now`` and wait for its end."""
    check.tick(now, nvml_ok=True)
    limit = time.monotonic() + 20
    while check._child is not None:
        assert time.monotonic() < limit
        check.tick(now, nvml_ok=True)
    return check.trouble


def test_access_is_tried_with_a_new_process_now_and_then(nvml: CompiledNvml) -> None:
    check = AccessCheck(program.command("nvml-child", "--probe"), 0.0)
    check.tick(1.0, nvml_ok=True)
    assert check._child is None
    assert checked(check, access_check.EVERY_SECONDS) == ""
    nvml.control("999 nvmlInitWithFlags *")
    assert "restart the container" in checked(check, 2 * access_check.EVERY_SECONDS)
    nvml.control()
    assert checked(check, 3 * access_check.EVERY_SECONDS) == ""


def test_nothing_is_tried_while_nvml_is_not_well() -> None:
    check = AccessCheck([sys.executable, "-c", ""], 0.0)
    check.tick(access_check.EVERY_SECONDS * 2, nvml_ok=False)
    assert check._child is None


def test_a_process_that_says_nothing_is_trouble() -> None:
    check = AccessCheck([sys.executable, "-c", ""], 0.0)
    assert "said nothing" in checked(check, access_check.EVERY_SECONDS)


def test_one_that_hangs_is_ended_and_no_other_begun_beside_it() -> None:
    check = AccessCheck([sys.executable, "-c", "import time; time.sleep(600)"], 0.0)
    now = access_check.EVERY_SECONDS
    check.tick(now, nvml_ok=True)
    child = check._child
    check.tick(now + 1, nvml_ok=True)
    assert check._child is child
    assert child is not None
    check.tick(now + 1000, nvml_ok=True)
    child.wait(10)
    check.tick(now + 1001, nvml_ok=True)
    assert check._child is None
