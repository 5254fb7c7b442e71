"""The main loop with everything around it real: child process, disk, HTTP. Only its waits are shortened."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import cli, gpu_process, sender, supervisor
from agent.control import Control
from agent.settings import Settings
from agent.supervisor import Supervisor
from agent.transport import Dashboard
from tests.agent.stub_dashboard import StubDashboard
from tests.fakes.nvml.compiled import CompiledNvml


class Running:
    def __init__(self, stub: StubDashboard, nvml: CompiledNvml, state: Path) -> None:
        self.stub = stub
        self.nvml = nvml
        self.state = state
        settings = Settings(url=stub.url, token="rra_own", instance_id=17, machine_id="m")
        self.supervisor = Supervisor(settings, Dashboard(stub.url, "rra_own"), str(state))
        self.thread = threading.Thread(target=self.supervisor.run)
        self.thread.start()

    def end(self) -> None:
        self.supervisor.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()

    def samples(self) -> list[dict[str, Any]]:
        return [sample for batch in self.stub.samples for sample in batch["samples"]]

    def gpu_samples(self) -> list[dict[str, Any]]:
        return [sample for sample in self.samples() if sample.get("gpus")]

    def events(self) -> list[str]:
        return [event["kind"] for batch in self.stub.samples for event in batch.get("events", [])]

    def nvml_state(self) -> str:
        """As the newest heartbeat tells it."""
        return self.stub.heartbeats[-1].get("nvml", {}).get("state", "") if self.stub.heartbeats else ""

    def more(self, what: Any, count: int = 3) -> None:
        """Until ``count`` more of something have arrived."""
        already = len(what())
        self.stub.wait_for(lambda: len(what()) >= already + count)


@pytest.fixture(scope="module")
def library_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become tenths."""
    for module, name, seconds in (
        (supervisor, "DEFAULT_INTERVAL_SECONDS", 0.1),
        (supervisor, "DEFAULT_REPORT_SECONDS", 0.1),
        (supervisor, "_INTERVAL_RANGE", (0.1, 300.0)),
        (supervisor, "_REPORT_RANGE", (0.1, 300.0)),
        (sender, "HEARTBEAT_SECONDS", 0.1),
        (gpu_process, "ANSWER_DEADLINE_SECONDS", 0.5),
        (gpu_process, "TERM_GRACE_SECONDS", 0.2),
        (gpu_process, "FIRST_RETRY_SECONDS", 0.2),
    ):
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture
def running(
    quick: None, dashboard: StubDashboard, library_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    dashboard.config = {"interval_seconds": 0.1, "report_seconds": 0.1, "paused": False}
    nvml = CompiledNvml(library_directory, "h100x8")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    one = Running(dashboard, nvml, tmp_path)
    try:
        yield one
    finally:
        nvml.control()
        one.end()


def test_gpus_and_host_share_one_time(running: Running) -> None:
    running.more(running.gpu_samples)
    assert all({"host", "gpus"} <= set(sample) for sample in running.gpu_samples()[1:])
    assert len(running.gpu_samples()[-1]["gpus"]) == 8


def test_every_sample_says_what_it_stands_for(running: Running) -> None:
    running.more(running.gpu_samples)
    assert all("interval_seconds" in sample for sample in running.samples())


def test_a_sample_stands_for_the_pace_at_which_it_is_taken(tmp_path: Path) -> None:
    settings = Settings(url="http://127.0.0.1:9", token="rra_own", instance_id=17, machine_id="m")
    idle = Supervisor(settings, Dashboard(settings.url, "rra_own"), str(tmp_path))
    idle.obey({"interval_seconds": 40})
    told = []
    for factor in (1, 2, 8):
        idle._thrift.factor = factor
        told.append(idle._moment(1.0)["interval_seconds"])
    assert told == [40, 80, 300], "slower where it spares its machine, and no more than the dashboard takes"


def test_inventory_and_environment_are_sent_once(running: Running) -> None:
    running.more(lambda: [batch for batch in running.stub.samples if "environment" in batch], 1)
    running.more(running.gpu_samples, 8)
    assert sum("inventory" in batch for batch in running.stub.samples) == 1
    environments = [batch["environment"] for batch in running.stub.samples if "environment" in batch]
    assert environments[-1]["driver"] == "590.48.01"
    assert environments[-1]["cuda_driver"] == "13.1"
    assert len(environments) <= 2, "again only when the driver became known"


def test_a_hanging_driver_stops_neither_host_metrics_nor_heartbeats(running: Running) -> None:
    running.more(running.gpu_samples)
    running.nvml.control("hang nvmlDeviceGetTemperature *")
    running.stub.wait_for(lambda: "driver_hung" in running.events())
    running.stub.wait_for(lambda: running.nvml_state() == "hung")
    gpus = len(running.gpu_samples())
    running.more(running.samples)
    assert all("memory_used_bytes" in sample["host"] for sample in running.samples()[-3:])
    assert len(running.gpu_samples()) == gpus, "old values are not served as new ones"
    running.nvml.control()
    running.stub.wait_for(lambda: "driver_back" in running.events())
    running.more(running.gpu_samples)
    assert running.nvml_state() == "ok"


def test_a_late_answer_keeps_its_own_time(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that takes longer than a tick: its rows become a sample of when they were read."""
    running.more(running.gpu_samples)
    message = {"at": 1000.0, "gpus": [{"uuid": "GPU-x", "state": "ok"}], "events": []}
    assert running.supervisor._taken(dict(message), 1003.0) == []
    running.stub.wait_for(lambda: any(sample["at"] == 1000.0 for sample in running.samples()))
    late = next(sample for sample in running.samples() if sample["at"] == 1000.0)
    assert "host" not in late


def test_a_lost_gpu_is_an_event_and_a_state_on_the_wire(running: Running) -> None:
    running.more(running.gpu_samples)
    victim = running.nvml.uuids[1]
    running.nvml.control(f"15 nvmlDeviceGetUtilizationRates {victim}", f"15 nvmlDeviceGetHandleByIndex_v2 {victim}")
    running.stub.wait_for(lambda: "gpu_lost" in running.events())
    running.more(running.gpu_samples, 2)
    rows = {gpu["uuid"]: gpu for gpu in running.gpu_samples()[-1]["gpus"]}
    assert rows[victim] == {"uuid": victim, "state": "lost"}
    assert len(rows) == 8


def test_the_server_can_pause_and_that_lets_go_of_nvml(running: Running) -> None:
    running.more(running.gpu_samples)
    running.stub.config["paused"] = True
    running.stub.wait_for(lambda: running.nvml_state() == "paused")
    assert running.supervisor._gpus.pid is None
    samples = len(running.samples())
    running.more(lambda: running.stub.heartbeats, 3)
    assert len(running.samples()) <= samples + 2, "a paused agent measures nothing"
    running.stub.config["paused"] = False
    running.more(running.gpu_samples)


def test_pause_and_resume_from_the_machine_itself(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    running.more(running.gpu_samples)
    assert cli.main(["pause", "--state-dir", str(running.state)]) == 0
    assert "NVML is released" in capsys.readouterr().err
    assert running.supervisor._gpus.pid is None
    assert cli.main(["resume", "--state-dir", str(running.state)]) == 0
    running.more(running.gpu_samples)


@pytest.mark.parametrize(
    ("config", "interval"),
    [
        ({"interval_seconds": 0}, 0.1),
        ({"interval_seconds": 1e9}, 300.0),
        ({"interval_seconds": "1; rm -rf /"}, 0.1),
        ({"interval_seconds": True}, 0.1),
        ({"interval_seconds": float("nan")}, 0.1),
        (["no object"], 0.1),
        ({"interval_seconds": 7, "command": "reboot", "exec": ["sh"], "url": "http://elsewhere"}, 7.0),
    ],
)
def test_a_server_can_ask_for_nothing_but_interval_and_pause(
    quick: None, config: Any, interval: float, tmp_path: Path
) -> None:
    settings = Settings(url="http://127.0.0.1:9", token="t", instance_id=1, machine_id="m")
    one = Supervisor(settings, Dashboard("http://127.0.0.1:9", "t"), str(tmp_path))
    one.obey(config)
    assert one._interval == interval
    assert one._settings.url == "http://127.0.0.1:9"
    assert one._paused_by_server is False
    one._outbox.close()


def test_heartbeats_say_how_much_waits_and_what_the_agent_costs(running: Running) -> None:
    running.stub.wait_for(lambda: running.stub.heartbeats and "cpu_percent" in running.stub.heartbeats[-1])
    beat = running.stub.heartbeats[-1]
    allowed = {
        "v",
        "agent_version",
        "boot_id",
        "sent_at",
        "nvml",
        "queued_batches",
        "oldest_queued_at",
        "dropped_batches",
        "actions",
    }
    assert set(beat) <= allowed | {"cpu_percent", "memory_bytes"}
    assert beat["memory_bytes"] > 0
    assert beat["dropped_batches"] == 0


def test_what_was_gathered_is_sent_at_the_end(running: Running) -> None:
    running.more(running.gpu_samples)
    running.supervisor._batcher.add_event({"at": 5.0, "kind": "agent_started", "detail": "the last one"})
    running.end()
    assert running.stub.samples[-1]["events"][-1]["detail"] == "the last one"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_agent_that_cannot_send_any_more_ends_to_be_started_again(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.more(running.gpu_samples)

    def broken(*_: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(running.supervisor._sender, "send_heartbeat", broken)
    running.thread.join(20)
    assert not running.thread.is_alive()
    assert running.supervisor.failed


def test_status_is_of_a_process_that_lives(tmp_path: Path) -> None:
    control = Control(str(tmp_path))
    assert control.status() == {}
    (tmp_path / "status.json").write_text('{"nvml": "ok", "pid": 999999999}')
    assert control.status() == {}
    (tmp_path / "status.json").write_text(f'{{"nvml": "ok", "pid": {os.getpid()}}}')
    assert control.status()["nvml"] == "ok"
    with contextlib.suppress(FileNotFoundError):
        control.resume()
    assert cli.main(["pause", "--state-dir", str(tmp_path / "none")]) != 0
