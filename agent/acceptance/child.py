"""The process that tests: it prints one line of JSON for each part, so that what was measured is there also if it is ended."""

from __future__ import annotations

import json
import os
import sys
import time

from agent.acceptance import processor
from agent.acceptance.disk import test_disk
from agent.acceptance.gpus import Gpus
from agent.acceptance.network import test_network
from agent.acceptance.torch_rates import TorchRates
from agent.acceptance.unmeasured import NotMeasuredError
from agent.host.cgroups import container_cgroup
from agent.host.memory import meminfo_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Part = dict[str, object]

EXIT_BUSY = 75  # sysexits.h, EX_TEMPFAIL
_NICE = 10
# Of the whole time; importing torch alone takes many seconds on a cold disk
_DISK_SHARE, _NETWORK_SHARE, _TORCH_SHARE = 0.25, 0.1, 0.5


def main(arguments: list[str]) -> int:
    """``SECONDS SETTINGS_FILE STATE_DIRECTORY [when-busy]``; exit status 75 where GPUs work."""
    seconds, settings_file, state_directory = float(arguments[0]), arguments[1], arguments[2]
    began = time.monotonic()
    os.nice(_NICE)
    with Gpus.opened() as gpus:
        if "when-busy" not in arguments[3:] and gpus.busy():
            say("busy", {"gpus": gpus.busy()})
            return EXIT_BUSY
        attempt("cpu", processor.test_processor)
        attempt("memory", memory)
        attempt("disk", lambda: test_disk(state_directory, seconds=seconds * _DISK_SHARE))
        attempt("network", lambda: test_network(settings_file, seconds=seconds * _NETWORK_SHARE))
        rates: dict[str, Part] = {}
        attempt("torch", lambda: _torch(gpus, rates, min(seconds * _TORCH_SHARE, seconds - (time.monotonic() - began))))
        attempt("gpu", lambda: gpus.described(rates))
    say("seconds", round(time.monotonic() - began, 1))
    return 0


def _torch(gpus: Gpus, rates: dict[str, Part], seconds: float) -> Part:
    """Links between card and machine slow down when nothing is sent: they are read while the rates are taken."""
    taken = TorchRates(seconds, gpus.uuids)
    while taken.running():
        gpus.note_links(loaded=True)
        time.sleep(0.2)
    rates.update(taken.by_uuid())
    return taken.described()


def attempt(name: str, part: Callable[[], Part]) -> None:
    """Whatever goes wrong in one part, the others are measured."""
    try:
        say(name, part())
    except NotMeasuredError as why:
        say_not(name, str(why))
    except Exception as error:  # noqa: BLE001  # see the docstring; what it was is in the report
        say_not(name, f"{type(error).__name__}: {error}")


def say(name: str, value: object) -> None:
    sys.stdout.write(json.dumps({"part": name, "value": value}) + "\n")
    sys.stdout.flush()


def say_not(name: str, why: str) -> None:
    sys.stdout.write(json.dumps({"not": name, "why": why[:200]}) + "\n")
    sys.stdout.flush()


def memory() -> Part:
    total = meminfo_bytes("/").get("MemTotal")
    if total is None:
        raise NotMeasuredError("/proc/meminfo names no total")
    limit = container_cgroup("/").memory_limit_bytes()
    return {"total_bytes": min(total, limit) if limit else total}
