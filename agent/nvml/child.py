"""The process that calls NVML and nothing else: no network, no files of ours, no thread.

It answers one line of JSON for each line on its standard input, and ends when that closes.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time

from agent.host.container import sees_host_processes
from agent.nvml.calls import DRIVER_NOT_LOADED, LIBRARY_MISMATCH, LIBRARY_NOT_FOUND, UnavailableError, call
from agent.nvml.device import Place
from agent.nvml.session import Session, driver_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_ADVICE = {
    LIBRARY_NOT_FOUND: ("absent", "no NVIDIA library on this machine"),
    DRIVER_NOT_LOADED: ("error", "the NVIDIA driver is not loaded: load it, or give the container its GPUs"),
    LIBRARY_MISMATCH: (
        "mismatch",
        "the driver was updated while running: reboot the machine, or re-create the container",
    ),
    999: ("error", "NVML cannot be initialized: a container that lost its devices must be started again"),
}


def main(arguments: list[str]) -> int:
    """``--probe`` only finds out whether a new process could use NVML at all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    try:
        call("nvmlInit")
    except UnavailableError as error:
        _say(_failure(error))
        return 0
    try:
        return _probe() if "--probe" in arguments else _serve()
    except UnavailableError as error:
        _say(_failure(error))
        return 0
    finally:
        _shut_down()


def _probe() -> int:
    _say({"count": call("nvmlDeviceGetCount")})
    return 0


def _serve() -> int:
    session = Session(Place("/", host_ids=sees_host_processes("/")))
    try:
        _say({"hello": driver_facts()})
        # What is alive now lives as long as the process: leave it out of collection, and its pages unwritten
        gc.collect()
        gc.freeze()
        for _ in sys.stdin.buffer:
            _say(session.sample(time.monotonic()))
    finally:
        session.close()
    return 0


def _failure(error: UnavailableError) -> dict[str, object]:
    state, advice = _ADVICE.get(error.code or 0, ("error", "NVML cannot be used"))
    return {"failed": state, "detail": f"{advice} ({error.reason})"}


def _say(message: dict[str, object]) -> None:
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _shut_down() -> None:
    try:
        call("nvmlShutdown")
    except UnavailableError:
        return
