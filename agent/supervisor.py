"""The main loop: samples on time, batches on disk, whatever NVML or the network do. It never calls NVML itself."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from functools import partial

from agent import __version__, program
from agent.acceptance.run import run_accept
from agent.access_check import AccessCheck
from agent.actions.desk import Desk
from agent.actions.record import Record
from agent.batching import Batcher
from agent.clock import steady_seconds
from agent.control import Control, write_status
from agent.gpu_process import ERROR, HUNG, MISMATCH, OK, GpuProcess
from agent.host.boot import boot_id
from agent.host.reader import HostReader
from agent.host.slow import SlowProbes
from agent.known_gpus import KnownGpus
from agent.outbox import Outbox
from agent.own_use import OwnUse
from agent.sender import Sender
from agent.serving.address import parse_address
from agent.serving.probe import ServingProbe
from agent.settings import DEFAULT_INTERVAL_SECONDS, DEFAULT_REPORT_SECONDS
from agent.thrift import Thrift

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.self_update import Updater
    from agent.settings import Settings
    from agent.transport import Dashboard

log = logging.getLogger("rackrent.supervisor")

_INTERVAL_RANGE = (1.0, 300.0)
_REPORT_RANGE = (5.0, 300.0)
# How long a tick waits for the GPUs, so that both halves share one time; a later answer becomes a sample of its own
_TOGETHER_SECONDS = 1.0
_STOP_SECONDS = 8.0
_STATE_EVENTS = {HUNG: "driver_hung", MISMATCH: "driver_mismatch"}


class Supervisor:
    def __init__(self, settings: Settings, dashboard: Dashboard, state_directory: str, settings_file: str = "") -> None:
        self._stopping = threading.Event()
        self._interval = DEFAULT_INTERVAL_SECONDS
        self._report = DEFAULT_REPORT_SECONDS
        self._paused_by_server = False
        self._batcher = Batcher()
        self._control = Control(state_directory)
        self._outbox = Outbox(os.path.join(state_directory, "outbox.sqlite3"))
        self._known = KnownGpus(os.path.join(state_directory, "gpus.json"), boot_id())
        self._slow = SlowProbes()
        given = settings.serving
        self._serving = ServingProbe(None if given is None else [parse_address(url) for url in given])
        self._host = HostReader(slow=self._slow.values)
        self._gpus = GpuProcess(program.command("nvml-child"), on_change=self._on_nvml_change)
        self._access = AccessCheck(program.command("nvml-child", "--probe"), time.monotonic())
        self._own_use = OwnUse()
        self._thrift = Thrift()
        self._driver: dict[str, object] = {}
        # The first batch as soon as there are rates: somebody who has just installed this is watching the page
        self._next_report = time.monotonic() + self._interval
        record = Record(os.path.join(state_directory, "actions.json"))
        self._desk = Desk(
            record,
            allowed=settings.actions,
            wake=self._wake_sender,
            paused=self._paused,
            accept=partial(run_accept, settings_file=settings_file, state_directory=state_directory),
        )
        self._sender = Sender(
            dashboard, self._outbox, boot_id=boot_id(), heartbeat=self._heartbeat, obey=self.obey, desk=self._desk
        )
        self._settings = settings
        self.updater: Updater | None = None
        self.updated = False
        self.failed = False
        self._offered = __version__

    def run(self) -> None:
        """Until ``stop`` is called, from a signal or another thread."""
        log.info("sending to %s as instance %s", self._settings.url, self._settings.instance_id)
        self._batcher.add_event({"at": time.time(), "kind": "agent_started"})
        self._slow.start()
        if self._settings.serving != []:
            self._serving.start()
        self._sender.start()
        due = time.monotonic()
        while not self._stopping.is_set():
            self._tick()
            # On a fixed grid; times that a suspended machine slept through are left out, not made up for
            due = max(due + self._pace, time.monotonic())
            self._stopping.wait(due - time.monotonic())
            self._check_sender()
        self._finish()

    def _check_sender(self) -> None:
        """Without its thread nothing is sent: end, so that whoever started the agent starts it again."""
        if not self._sender.is_alive() and not self._stopping.is_set():
            log.error("the sending thread has ended; its error is above")
            self.failed = True
            self._stopping.set()

    def stop(self) -> None:
        self._stopping.set()

    def stop_for_update(self) -> None:
        self.updated = True
        self._stopping.set()

    def obey(self, config: object) -> None:
        """All that a server can ask: how often to sample and to report, and to pause. Anything else is not read."""
        if not isinstance(config, dict):
            return
        self._interval = _within(config.get("interval_seconds"), _INTERVAL_RANGE, self._interval)
        self._serving.interval_seconds = self._interval
        self._report = _within(config.get("report_seconds"), _REPORT_RANGE, self._report)
        if isinstance(config.get("paused"), bool):
            self._paused_by_server = config["paused"]
        self._note_version(config.get("agent_version"))
        # What runs would end with this process
        if self.updater is not None and not self._desk.busy:
            self.updater.consider(config)

    def _note_version(self, offered: object) -> None:
        """Told once for each version: whoever reads this log should know that another one is handed out."""
        if isinstance(offered, str) and offered not in (self._offered, __version__):
            self._offered = offered
            log.info("the dashboard hands out version %.40s of the agent, this is %s", offered, __version__)

    def _tick(self) -> None:
        paused = self._paused()
        (self._gpus.pause if paused else self._gpus.resume)()
        self._gpus.tick()
        self._access.tick(time.monotonic(), nvml_ok=self._gpus.state == OK)
        serving = self._serving.take()
        if not paused:
            self._sample()
            for sample in serving:
                self._batcher.add_sample(sample)
        now = time.monotonic()
        if now >= self._next_report or self._batcher.full:
            self._next_report = now + self._report
            self._flush()
        write_status(self._control.status_file, self._status())

    def _paused(self) -> bool:
        return self._paused_by_server or self._control.paused()

    def _sample(self) -> None:
        at = time.time()
        self._gpus.ask()
        host = self._host.read(time.monotonic())
        messages = self._gpus.receive(min(_TOGETHER_SECONDS, self._interval / 2))
        gpus = [gpu for message in messages for gpu in self._taken(message, at)]
        self._batcher.add_sample({**self._moment(at), "host": host, **({"gpus": gpus} if gpus else {})})
        environment = self._slow.environment()
        if environment:
            self._batcher.tell("environment", {**environment, **self._driver})

    @property
    def _pace(self) -> float:
        return self._interval * self._thrift.factor

    def _moment(self, at: float) -> dict[str, object]:
        """A sample stands for the interval at which it was taken, also when it is sent after that was changed."""
        return {"at": at, "interval_seconds": round(min(self._pace, _INTERVAL_RANGE[1]))}

    def _taken(self, message: dict[str, object], tick_at: float) -> list[dict[str, object]]:
        """The GPU rows to put beside the host's; rows of an earlier question become a sample with their own time."""
        if isinstance(message.get("hello"), dict):
            self._driver = message["hello"]  # type: ignore[assignment]  # just looked at
            return []
        for event in _rows(message.get("events")):
            self._batcher.add_event(event)
        if "inventory" in message:
            self._batcher.tell("inventory", self._known.learn(_rows(message["inventory"]), self._batcher.add_event))
        gpus = [*_rows(message.get("gpus")), *self._known.lost_rows()]
        at = message.get("at")
        if isinstance(at, float) and at < tick_at - 0.5:
            self._batcher.add_sample({**self._moment(at), "gpus": gpus})
            return []
        return gpus

    def _flush(self) -> None:
        if self._batcher.flush(self._outbox, made_at=time.time(), steady_at=steady_seconds(), boot_id=boot_id()):
            self._sender.wake()

    def _wake_sender(self) -> None:
        self._sender.wake()

    def _on_nvml_change(self, before: str, state: str, detail: str) -> None:
        kind = _STATE_EVENTS.get(state) or ("driver_back" if state == OK and before in (HUNG, MISMATCH) else None)
        if kind is not None:
            self._batcher.add_event({"at": time.time(), "kind": kind, "detail": detail})

    def _heartbeat(self) -> dict[str, object]:
        """Called by the sender's thread; reads only single attributes of what the main loop writes."""
        waiting, oldest = self._outbox.waiting()
        pids = [os.getpid(), *([self._gpus.pid] if self._gpus.pid else [])]
        body: dict[str, object] = {"queued_batches": waiting, "dropped_batches": self._outbox.dropped()}
        body["actions"] = self._desk.offered()
        if oldest is not None:
            body["oldest_queued_at"] = oldest
        if self._gpus.state != "starting":
            body["nvml"] = self._nvml()
        use = self._own_use.read(time.monotonic(), pids)
        if "cpu_percent" in use:
            self._thrift.learn(use["cpu_percent"])
        return {**body, **use}

    def _nvml(self) -> dict[str, object]:
        gpus = self._gpus
        trouble = self._access.trouble if gpus.state == OK else ""
        state, detail = (ERROR, trouble) if trouble else (gpus.state, gpus.detail)
        return {"state": state, "detail": detail, "since": gpus.since}

    def _status(self) -> dict[str, object]:
        return {
            "nvml": self._gpus.state,
            "pid": os.getpid(),
            "interval_seconds": self._interval,
            "paused_by_server": self._paused_by_server,
        }

    def _finish(self) -> None:
        """Keep what was gathered, let NVML go, and try to send once more."""
        log.info("stopping")
        self._flush()
        self._access.stop()
        self._desk.stop(_STOP_SECONDS / 4)
        self._gpus.stop(_STOP_SECONDS / 2)
        self._sender.stop(_STOP_SECONDS / 2)
        if not self._sender.is_alive():
            self._outbox.close()


def _within(value: object, limits: tuple[float, float], otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        return otherwise
    return min(max(float(value), limits[0]), limits[1])


def _rows(value: object) -> list[dict[str, object]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
