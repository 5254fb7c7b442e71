"""The testing process: each part measured by itself, what cannot be measured named with its reason, and nothing left behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.acceptance import child, disk, fio, interpreters, network, processor
from agent.acceptance.gpus import Gpus
from agent.acceptance.run import merged, run_accept
from agent.acceptance.torch_rates import TorchRates
from agent.acceptance.unmeasured import NotMeasuredError
from agent.settings import Settings, save_settings
from tests.agent.stub_dashboard import StubDashboard
from tests.fakes.nvml.compiled import CompiledNvml
from tests.fakes.nvml.library import PROFILES, FakeNvml, installed
from tests.programs import needs

MIB = 1 << 20
LINKS = {"pcie.generation": 1, "pcie.generation_max": 5, "pcie.width": 16, "pcie.width_max": 16}

# As much of torch as the fixed script asks for; the "card" takes no time at all
TORCH = """
import contextlib, json
__version__ = "9.9.0+fake"
bfloat16, float16, uint8 = "torch.bfloat16", "torch.float16", "torch.uint8"
class Tensor:
    def __init__(self, *_, **__): pass
    def pin_memory(self): return self
    def copy_(self, other, non_blocking=False): return self
empty = randn = Tensor
def matmul(a, b, out=None): return out
class _Properties:
    uuid = "11111111-0000-0000-0000-000000000000"
class cuda:
    @staticmethod
    def device_count(): return {count}
    @staticmethod
    def set_device(index):
        if index == {broken}: raise RuntimeError("CUDA error: out of memory")
    @staticmethod
    def get_device_properties(index):
        one = _Properties(); one.uuid = {uuids!r}[index]; return one
    synchronize = empty_cache = staticmethod(lambda: None)
    is_bf16_supported = staticmethod(lambda: True)
"""


def profile(**changes: Any) -> dict[str, Any]:
    said = json.loads((PROFILES / "h100x8.json").read_text())
    for gpu in said["gpus"]:
        gpu["values"].update({**LINKS, "utilization.gpu": 0, **changes})
    return dict(said)


def test_the_cards_and_their_links_are_told_as_the_driver_names_them() -> None:
    with installed(FakeNvml(profile())), Gpus.opened() as gpus:
        assert gpus.busy() == []
        found: Any = gpus.described({gpus.uuids[2]: {"matrix_type": "bfloat16"}})
    assert (found["count"], found["expected"], found["driver"]) == (8, 8, "590.48.01")
    assert found["under_load"] is False
    first = found["gpus"][0]
    assert first["name"] == "NVIDIA H100 80GB HBM3"
    assert first["memory_total_bytes"] == 85520809984
    assert {name: first[name] for name in first if name.startswith("pcie_")} == {
        "pcie_generation": 1,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
    }
    assert found["gpus"][2]["matrix_type"] == "bfloat16"


def test_an_idle_link_is_told_as_it_was_under_load() -> None:
    library = FakeNvml(profile())
    with installed(library), Gpus.opened() as gpus:
        gpus.note_links(loaded=False)
        for device in library.devices:
            device.values["pcie.generation"] = 5
        gpus.note_links(loaded=True)
        for device in library.devices:
            device.values["pcie.generation"] = 1
        found: Any = gpus.described({})
    assert found["under_load"] is True
    assert {row["pcie_generation"] for row in found["gpus"]} == {5}


def test_a_driver_that_knows_no_links_leaves_them_out() -> None:
    said = json.loads((PROFILES / "h100.json").read_text())
    with installed(FakeNvml(said)), Gpus.opened() as gpus:
        found: Any = gpus.described({})
    assert not [name for name in found["gpus"][0] if name.startswith("pcie_")]


@pytest.mark.parametrize(("percent", "expected"), [(0, []), (4, []), (60, list(range(8)))])
def test_cards_that_work_are_busy(percent: int, expected: list[int]) -> None:
    with installed(FakeNvml(profile(**{"utilization.gpu": percent}))), Gpus.opened() as gpus:
        assert gpus.busy() == expected


def test_a_machine_without_nvml_says_so() -> None:
    said = {**profile(), "absent_functions": ["nvmlInitWithFlags"]}
    with installed(FakeNvml(said)), Gpus.opened() as gpus:
        assert gpus.busy() == []
        with pytest.raises(NotMeasuredError, match="NVML cannot be used"):
            gpus.described({})


def test_the_processor_is_counted_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_SINGLE_SECONDS", 0.1)
    monkeypatch.setattr(processor, "_ALL_SECONDS", 0.1)
    found: Any = processor.test_processor()
    assert found["count"] == len(os.sched_getaffinity(0))
    assert found["single_rate"] > 0
    assert found["all_rate"] > 0
    assert found["effective_cores"] > 0


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disk, "MOST_FILE_BYTES", 8 * MIB)
    monkeypatch.setattr(disk, "LEAST_FILE_BYTES", MIB)
    monkeypatch.setattr(disk, "choose_place", lambda _state: (str(tmp_path), 1 << 40, 1 << 39))
    return tmp_path


def test_the_built_in_test_measures_a_disk_and_leaves_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    found: Any = disk.test_disk("/", seconds=0.4)
    assert found["by"] == "own"
    assert found["file_bytes"] == 8 * MIB
    assert found["write_bytes_per_second"] > 0
    assert found["write_iops"] > 0
    assert ("read_iops" in found) == found["direct"], "out of the page cache it would be the memory's rate"
    assert list(small_disk.iterdir()) == []


def test_fio_measures_it_where_there_is_one(small_disk: Path) -> None:
    needs("fio")
    found: Any = disk.test_disk("/", seconds=4)
    assert found["by"] in ("fio", "own")
    if found["by"] == "own":
        pytest.skip("this file system knows no direct access")
    assert {"write_bytes_per_second", "read_bytes_per_second", "write_iops", "read_iops"} <= set(found)
    assert list(small_disk.iterdir()) == []


def test_a_fio_that_fails_is_no_zero(tmp_path: Path) -> None:
    broken = tmp_path / "fio"
    broken.write_text('#!/bin/sh\necho \'{"jobs": [{"error": 22}]}\'\n')
    broken.chmod(0o755)
    with disk.unnamed_file(str(tmp_path)) as descriptor:
        assert fio.run_fio(str(broken), descriptor, file_bytes=MIB, seconds=1) == {}


@pytest.mark.parametrize(
    ("size", "available", "told"),
    [(1000 * MIB, 90 * MIB, "nearly full"), (2000 * MIB, 1000 * MIB, "too few"), (1 << 40, 1 << 35, "nearly full")],
)
def test_nothing_is_written_to_a_disk_that_is_nearly_full(size: int, available: int, told: str) -> None:
    with pytest.raises(NotMeasuredError, match=told):
        disk.file_size(size, available)


def test_the_file_is_never_more_than_a_small_part_of_what_is_free() -> None:
    assert disk.file_size(1 << 42, 1 << 41) == 1 << 30
    assert disk.file_size(10_000 * MIB, 4_000 * MIB) == 200 * MIB


def venv(directory: Path, count: int = 8, broken: int = -1) -> Path:
    """A Python with a torch in it, as pip leaves one behind."""
    uuids = [gpu["uuid"] for gpu in profile()["gpus"]]
    packages = directory / "lib/python3.99/site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch-9.9.0.dist-info").mkdir()
    text = TORCH.replace("{count}", str(count)).replace("{broken}", str(broken)).replace("{uuids!r}", repr(uuids))
    (packages / "torch/__init__.py").write_text(text)
    interpreter = directory / "bin/python3.99"
    interpreter.parent.mkdir()
    # Isolated, as the agent starts it, it finds its packages through what a virtual environment would say
    interpreter.write_text(
        f'#!/bin/sh\nshift\nshift\nexec {sys.executable} -c "import sys; sys.path.insert(0, \'{packages}\')\n$1" "$2"\n'
    )
    interpreter.chmod(0o755)
    return packages


@pytest.fixture
def torch_at(monkeypatch: pytest.MonkeyPatch):
    def put(packages: Path) -> None:
        monkeypatch.setattr(interpreters, "places_with", lambda _package: [str(packages)])
        monkeypatch.setattr(interpreters, "_untrusted", lambda _path: None)

    return put


def finished(rates: TorchRates) -> TorchRates:
    while rates.running():
        pass
    return rates


def test_rates_come_from_the_machines_own_torch(tmp_path: Path, torch_at, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_at(venv(tmp_path))
    monkeypatch.setattr("agent.acceptance.torch_rates._EACH_SECONDS", 0.01)
    uuids = [gpu["uuid"] for gpu in profile()["gpus"]]
    rates = finished(TorchRates(60, uuids))
    assert rates.described() == {"version": "9.9.0+fake", "count": 8, "timed_out": False}
    found: Any = rates.by_uuid()
    assert sorted(found) == sorted(uuids)
    assert found[uuids[0]]["matrix_type"] == "bfloat16"
    assert found[uuids[0]]["host_to_device_bytes_per_second"] > 0
    assert found[uuids[0]]["matrix_flops_per_second"] > 0


def test_a_card_that_fails_is_named_and_the_others_are_measured(
    tmp_path: Path, torch_at, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_at(venv(tmp_path, broken=3))
    monkeypatch.setattr("agent.acceptance.torch_rates._EACH_SECONDS", 0.01)
    uuids = [gpu["uuid"] for gpu in profile()["gpus"]]
    rates = finished(TorchRates(60, uuids))
    assert rates.described()["failed"] == {"3": "RuntimeError: CUDA error: out of memory"}
    assert [uuid for uuid, rate in rates.by_uuid().items() if not rate] == [uuids[3]]


def test_without_torch_there_is_no_rate_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "places_with", lambda _package: [])
    with pytest.raises(NotMeasuredError, match="no Python with torch"):
        TorchRates(10, [])


def test_a_torch_that_sees_no_card_says_so(tmp_path: Path, torch_at) -> None:
    torch_at(venv(tmp_path, count=0))
    with pytest.raises(NotMeasuredError, match="sees no GPU"):
        finished(TorchRates(60, [])).described()


def test_a_python_that_others_could_change_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = venv(tmp_path / "venv")
    monkeypatch.setattr(interpreters, "places_with", lambda _package: [str(packages)])
    (packages / "torch").chmod(0o777)
    with pytest.raises(NotMeasuredError, match="others could change"):
        interpreters.find_python("torch")


def test_the_network_is_measured_against_the_dashboard_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = {"down": 0, "up": 0}

    class Peer:
        def __init__(self, url: str, token: str, **_: object) -> None:
            assert (url, token) == ("http://127.0.0.1:1", "rra_own")

        def get(self, path: str, *, most_bytes: int) -> Any:
            moved["down"] += most_bytes
            return network_answer(200), b"x" * most_bytes

        def post_bytes(self, path: str, data: bytes) -> Any:
            moved["up"] += len(data)
            return network_answer(200)

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(network, "Dashboard", Peer)
    path = str(tmp_path / "agent.json")
    save_settings(path, Settings(url="http://127.0.0.1:1", token="rra_own", instance_id=1, machine_id="m"))
    found: Any = network.test_network(path, seconds=60)
    assert found["peer"] == "dashboard"
    assert found["download_bytes_per_second"] > 0
    assert moved == {"down": 64 * MIB, "up": 32 * MIB}


def network_answer(status: int) -> Any:
    from agent.transport import Answer

    return Answer(status, {})


def test_a_dashboard_that_hands_out_nothing_is_a_reason(tmp_path: Path, dashboard: StubDashboard) -> None:
    path = str(tmp_path / "agent.json")
    save_settings(path, Settings(url=dashboard.url, token="rra_own", instance_id=1, machine_id="m"))
    with pytest.raises(NotMeasuredError, match="404"):
        network.test_network(path, seconds=1)


def test_lines_that_are_none_are_left_out() -> None:
    output = b'd": 1}\n{"part": "cpu", "value": {"count": 4}}\nnoise\n{"not": "torch", "why": "none"}\n[1]\n'
    assert merged(output) == {"cpu": {"count": 4}, "not_measured": {"torch": "none"}}


class TestProcess:
    """The process as the agent starts it, on the stand-in for the driver's library."""

    @pytest.fixture(autouse=True)
    def machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledNvml:
        nvml = CompiledNvml(tmp_path, "h100x8")
        for name, value in nvml.environment.items():
            monkeypatch.setenv(name, value)
        return nvml

    def run(self, tmp_path: Path, **options: Any) -> Any:
        settings = {"seconds": 20, "when_busy": False, "stopping": lambda: False, **options}
        return run_accept(settings_file=str(tmp_path / "none.json"), state_directory=str(tmp_path), **settings)

    def test_it_refuses_while_gpus_work(self, tmp_path: Path) -> None:
        state, result, detail = self.run(tmp_path)
        assert (state, detail) == ("failed", "its GPUs work: nothing was tested")
        assert 0 in result["busy"]["gpus"]
        assert "disk" not in result

    def test_it_tests_what_it_can_and_says_why_not_the_rest(self, tmp_path: Path) -> None:
        state, result, detail = self.run(tmp_path, when_busy=True)
        assert (state, detail) == ("done", "")
        assert result["gpu"]["count"] == 8
        assert result["cpu"]["count"] > 0
        assert result["memory"]["total_bytes"] > 0
        assert "disk" in result or "disk" in result["not_measured"]
        assert "network" in result["not_measured"]
        assert result["seconds"] < 60

    def test_it_ends_when_the_machine_is_about_to_be_stopped(self, tmp_path: Path) -> None:
        state, _, detail = self.run(tmp_path, when_busy=True, stopping=lambda: True)
        assert state == "failed"
        assert "about to be stopped" in detail


def test_what_goes_wrong_in_one_part_is_named_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    empty: dict[str, dict[str, object]] = {}
    child.attempt("disk", lambda: empty["missing"])
    child.attempt("memory", child.memory)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"not": "disk", "why": "KeyError: 'missing'"}
    assert lines[1]["value"]["total_bytes"] > 0
