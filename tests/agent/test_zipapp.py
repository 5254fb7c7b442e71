"""The one file that is served: the same bytes each time, able to run by itself on the oldest Python there may be."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.build import build_zipapp
from agent.own_use import proportional_bytes
from agent.unpacking import unpack
from tests.agent.interpreters import oldest_python
from tests.agent.stub_dashboard import StubDashboard
from tests.fakes.nvml.compiled import CompiledNvml


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("built") / "rackrent-agent.pyz"
    build_zipapp(target)
    return target


@pytest.fixture(params=["this", "oldest"])
def python(request: pytest.FixtureRequest) -> str:
    return sys.executable if request.param == "this" else oldest_python()


def test_the_same_sources_give_the_same_bytes(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    again = tmp_path / "again.pyz"
    assert build_zipapp(again) == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert again.read_bytes() == archive.read_bytes()


def test_the_command_line_prints_the_hash(tmp_path: Path) -> None:
    target = tmp_path / "agent.pyz"
    words = [sys.executable, "-m", "agent.build", str(target)]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(target.read_bytes()).hexdigest()


def test_it_carries_its_only_dependency_and_nothing_of_the_dashboard(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert "pynvml.py" in names
    assert {name.split("/")[0] for name in names} == {"agent", "__main__.py", "pynvml.py"}


def test_every_module_is_understood_by_the_oldest_python(archive: Path) -> None:
    code = (
        "import importlib, sys, zipfile; sys.path.insert(0, sys.argv[1])\n"
        "for name in zipfile.ZipFile(sys.argv[1]).namelist():\n"
        "    if name.startswith('agent/') and not name.endswith('__main__.py'):\n"
        "        importlib.import_module(name[:-3].replace('/', '.').replace('.__init__', ''))"
    )
    done = subprocess.run([oldest_python(), "-c", code, archive], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_unpacking_replaces_older_versions_and_is_done_once(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "code/0123456789abcdef").mkdir(parents=True)
    place = Path(unpack(str(archive), str(tmp_path / "code")))
    assert [path.name for path in (tmp_path / "code").iterdir()] == [place.name]
    assert list(place.glob("__pycache__/pynvml.*.pyc"))
    stamp = (place / "pynvml.py").stat().st_mtime_ns
    assert unpack(str(archive), str(tmp_path / "code")) == str(place)
    assert (place / "pynvml.py").stat().st_mtime_ns == stamp


class Running:
    def __init__(self, process: subprocess.Popen[bytes], dashboard: StubDashboard, nvml: CompiledNvml) -> None:
        self.process = process
        self.dashboard = dashboard
        self.nvml = nvml

    def gpu_samples(self) -> list[dict[str, Any]]:
        return [sample for batch in self.dashboard.samples for sample in batch["samples"] if sample.get("gpus")]

    @property
    def nvml_pid(self) -> int:
        (pid,) = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(pid)


@pytest.fixture
def running(archive: Path, python: str, dashboard: StubDashboard, tmp_path: Path) -> Iterator[Running]:
    nvml = CompiledNvml(tmp_path, "h100x8")
    files = ["--config", str(tmp_path / "agent.json"), "--state-dir", str(tmp_path / "state")]
    enrol = [python, str(archive), "enrol", "--url", dashboard.url, "--token", "rre_x", *files]
    subprocess.run(enrol, env=nvml.environment, check=True, capture_output=True, timeout=60)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([python, str(archive), "run", *files], env=nvml.environment, stderr=log)
        try:
            yield Running(process, dashboard, nvml)
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(20)
    assert code == 0, (tmp_path / "log").read_text()


def test_gpus_and_host_arrive_through_two_small_processes(running: Running) -> None:
    running.dashboard.wait_for(running.gpu_samples, 40)
    inventory = next(batch["inventory"] for batch in running.dashboard.samples if "inventory" in batch)
    assert [row["uuid"] for row in inventory] == running.nvml.uuids
    assert all("gpu_instance_id" not in row for row in inventory)
    assert len(running.gpu_samples()[0]["gpus"]) == 8
    assert running.dashboard.enrolments[0]["gpus"][0]["name"] == "NVIDIA H100 80GB HBM3"

    nvml_maps = Path(f"/proc/{running.nvml_pid}/maps").read_text()
    assert "libnvidia-ml" in nvml_maps
    for library in ("_ssl", "libssl", "_sqlite3", "_socket"):
        assert library not in nvml_maps
    assert "libnvidia-ml" not in Path(f"/proc/{running.process.pid}/maps").read_text()
    memory = [proportional_bytes(pid) or 0 for pid in (running.process.pid, running.nvml_pid)]
    assert sum(memory) < 35 << 20


def test_batches_of_an_outage_and_a_kill_arrive_later_in_order(
    archive: Path, dashboard: StubDashboard, tmp_path: Path
) -> None:
    nvml = CompiledNvml(tmp_path, "rtx4090")
    files = ["--config", str(tmp_path / "agent.json"), "--state-dir", str(tmp_path / "state")]
    enrol = [sys.executable, str(archive), "enrol", "--url", dashboard.url, "--token", "rre_x", *files]
    subprocess.run(enrol, env=nvml.environment, check=True, capture_output=True, timeout=60)
    run = [sys.executable, str(archive), "run", *files]
    dashboard.answers = [(503, {"error": "unavailable"}, {"Retry-After": "3600"})]
    process = subprocess.Popen(run, env=nvml.environment, stderr=subprocess.DEVNULL)
    try:
        dashboard.wait_for(lambda: not dashboard.answers, 40)
        wait_until(lambda: queued(tmp_path / "state/outbox.sqlite3") >= 2)
    finally:
        process.kill()
        process.wait(10)
    kept = queued(tmp_path / "state/outbox.sqlite3")
    again = subprocess.Popen(run, env=nvml.environment, stderr=subprocess.DEVNULL)
    try:
        dashboard.wait_for(lambda: len(dashboard.samples) > kept, 40)
    finally:
        again.send_signal(signal.SIGTERM)
        again.wait(20)
    assert [batch["seq"] for batch in dashboard.samples] == list(range(1, len(dashboard.samples) + 1))
    times = [sample["at"] for batch in dashboard.samples for sample in batch["samples"]]
    assert times == sorted(times)
    assert len(times) == len(set(times))


def queued(path: Path) -> int:
    import sqlite3

    if not path.exists():
        return 0
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(database.execute("SELECT count(*) FROM batch").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        database.close()


def wait_until(condition: Any, seconds: float = 40.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)
