"""What Prometheus gets: parsed by its own parser, with DCGM's and node_exporter's names, units and traps."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.exposition import DCGM, Page, add_gpus
from agent.exposition_host import add_host
from agent.metrics_server import ListenError, parse_listen, serve
from tests.agent.nvml_session import running
from tests.agent.shared_captures import capture
from tests.fakes.nvml.compiled import CompiledNvml
from tests.fakes.nvml.library import FakeNvml

HOST = {"Hostname": "node-1"}


def families(text: str) -> dict[str, Any]:
    """By series name; each a list of (labels, value)."""
    found: dict[str, Any] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            # The parser appends to counters what DCGM's names do not have
            name = sample.name.removesuffix("_total") if sample.name.startswith("DCGM_") else sample.name
            found.setdefault(name, []).append((sample.labels, sample.value))
    return found


def page_of(profile: str, change: Any = lambda library: None) -> dict[str, Any]:
    library = FakeNvml(profile)
    change(library)
    with running(library) as session:
        inventory = session.sample()["inventory"]
        page = Page()
        add_gpus(page, session.sample()["gpus"], inventory, HOST)
    return families(page.text())


def only(series: Any) -> float:
    ((_, value),) = series
    return float(value)


def test_units_are_dcgms_not_nvmls() -> None:
    page = page_of("h100")
    assert only(page["DCGM_FI_DEV_POWER_USAGE"]) == pytest.approx(631.95)
    assert only(page["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]) == pytest.approx(91234567 + 10 * 631950)
    assert only(page["DCGM_FI_DEV_FB_USED"]) == pytest.approx(20780679168 / (1 << 20))
    assert only(page["DCGM_FI_DEV_GPU_UTIL"]) == 100
    assert only(page["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]) == pytest.approx(0.4375)
    assert only(page["DCGM_FI_PROF_PCIE_TX_BYTES"]) == 1200 * (1 << 20)
    assert only(page["DCGM_FI_PROF_PCIE_RX_BYTES"]) == 3400 * (1 << 20)


def test_used_free_and_reserved_memory_make_up_the_whole() -> None:
    page = page_of("h100")
    parts = [only(page[f"DCGM_FI_DEV_FB_{part}"]) for part in ("USED", "FREE", "RESERVED")]
    assert sum(parts) == pytest.approx(85520809984 / (1 << 20))


def test_labels_are_those_that_dashboards_filter_by() -> None:
    ((labels, _),) = page_of("h100")["DCGM_FI_DEV_GPU_UTIL"]
    assert labels == {
        "gpu": "0",
        "UUID": "GPU-11111111-0000-0000-0000-000000000000",
        "pci_bus_id": "00000000:00:09.0",
        "device": "nvidia0",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "node-1",
    }


def test_mig_instances_carry_their_parents_uuid_and_their_own_number() -> None:
    page = page_of("h100-mig")
    rows = page["DCGM_FI_PROF_SM_ACTIVE"]
    assert {(labels["GPU_I_ID"], labels["GPU_I_PROFILE"]) for labels, _ in rows} == {
        ("2", "3g.40gb"),
        ("3", "2g.20gb"),
        ("9", "1g.10gb"),
        ("10", "1g.10gb"),
    }
    assert {labels["UUID"] for labels, _ in rows} == {"GPU-22222222-0000-0000-0000-000000000000"}
    assert "DCGM_FI_DEV_GPU_UTIL" not in page


def test_what_a_card_does_not_have_is_no_series() -> None:
    page = page_of("rtx4090")
    for name in (
        "DCGM_FI_DEV_MEMORY_TEMP",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_PROF_SM_ACTIVE",
        "DCGM_FI_PROF_PCIE_TX_BYTES",
    ):
        assert name not in page


def test_pcie_from_another_source_is_no_profiling_metric() -> None:
    assert "DCGM_FI_PROF_PCIE_TX_BYTES" not in page_of("l40s")


def test_one_impossible_value_does_not_cost_the_page() -> None:
    def spoil(library: FakeNvml) -> None:
        library.devices[0].values["temperature"] = 4294967295

    page = page_of("h100x8", spoil)
    assert len(page["DCGM_FI_DEV_GPU_TEMP"]) == 7
    assert len(page["DCGM_FI_DEV_POWER_USAGE"]) == 8


def test_no_process_id_is_a_label() -> None:
    for series in page_of("h100x8").values():
        for labels, _ in series:
            assert not {"pid", "process_name"} & set(labels)


def test_a_name_with_quotes_and_backslashes_is_escaped() -> None:
    page = Page()
    page.add("x", "gauge", "help", [({"name": 'a"b\\c\nd'}, 1.0)])
    ((labels, _),) = families(page.text())["x"]
    assert labels["name"] == 'a"b\\c\nd'


def test_types_and_names_are_those_of_dcgm_exporters_own_list() -> None:
    rows = csv.reader(io.StringIO(capture("dcgm-exporter__default-counters.csv")))
    theirs = {row[0].strip("# ").strip(): row[1].strip() for row in rows if len(row) > 2 and "DCGM_FI" in row[0]}
    for name, (kind, *_) in DCGM.items():
        if name in theirs and theirs[name] in ("gauge", "counter"):
            assert kind == theirs[name], name
    assert len(set(DCGM) & set(theirs)) >= 15


def test_nvidias_own_dashboard_finds_all_its_series() -> None:
    text = json.dumps(json.loads(capture("dcgm-exporter__grafana-dashboard-12239.json")))
    wanted = set(re.findall(r"DCGM_FI_\w+", text))
    assert wanted
    assert wanted <= set(page_of("h100"))


def test_host_series_have_node_exporters_names_and_types(machine: Path) -> None:
    theirs = {}
    for family in text_string_to_metric_families(capture("node_exporter__e2e-subset.metrics")):
        theirs.update({sample.name: family.type for sample in family.samples})
    page = Page()
    (machine / "proc/pressure").mkdir()
    (machine / "proc/diskstats").write_text(capture("proc_diskstats.txt"))
    for name in ("cpu", "io", "memory"):
        (machine / "proc/pressure" / name).write_text(capture(f"proc_pressure_{name}.txt"))
    add_host(page, f"{machine}/")
    ours = {
        sample.name: family.type for family in text_string_to_metric_families(page.text()) for sample in family.samples
    }
    assert len(ours) > 15
    unknown = {name for name in ours if name not in theirs}
    assert unknown <= {"node_disk_discarded_sectors_total", "node_boot_time_seconds"}
    assert all(ours[name] == theirs[name] for name in ours if name in theirs)


def test_disk_values_are_those_that_node_exporter_reads_from_the_same_file(machine: Path) -> None:
    theirs = families(capture("node_exporter__e2e-subset.metrics"))
    (machine / "proc/diskstats").write_text(capture("proc_diskstats.txt"))
    page = Page()
    add_host(page, f"{machine}/")
    ours = families(page.text())
    compared = 0
    for name in (name for name in ours if name.startswith("node_disk_")):
        said = {labels["device"]: value for labels, value in theirs.get(name, [])}
        for labels, value in ours[name]:
            if labels["device"] in said:
                assert value == pytest.approx(said[labels["device"]]), (name, labels)
                compared += 1
    assert compared > 40


@pytest.mark.parametrize("listen", ["0.0.0.0:9469", "10.0.0.5:9469", ":::9469", "nonsense", "127.0.0.1:99999"])
def test_beyond_this_machine_only_with_a_token(listen: str) -> None:
    with pytest.raises(ListenError):
        parse_listen(listen, has_token=False)


def test_with_a_token_any_address_may_be_given() -> None:
    assert parse_listen("0.0.0.0:9469", has_token=True) == ("0.0.0.0", 9469)
    assert parse_listen("[::1]:9469", has_token=False) == ("::1", 9469)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in CompiledNvml(tmp_path, "h100x8").environment.items():
        monkeypatch.setenv(name, value)
    server = serve("127.0.0.1:0", "s3cret", "hostname")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join(5)


def fetch(url: str, token: str = "s3cret") -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def test_the_served_page_has_gpus_host_and_the_agent_itself(served: str, tmp_path: Path) -> None:
    fetch(served)
    page = families(fetch(served))
    assert len(page["DCGM_FI_PROF_SM_ACTIVE"]) == 8
    assert {labels["hostname"] for labels, _ in page["DCGM_FI_DEV_GPU_UTIL"]} == {os.uname().nodename}
    assert page["node_memory_MemTotal_bytes"]
    assert only(page["rackrent_agent_last_collect_success"]) == 1
    assert only(page["rackrent_agent_gpus"]) == 8


def test_an_equal_second_xid_is_told_by_the_counter(served: str, tmp_path: Path) -> None:
    fetch(served)
    uuid = "GPU-20000000-aaaa-bbbb-cccc-000000000002"
    (tmp_path / "control.txt").write_text(f"xid 79 {uuid}\nxid 79 {uuid}\n")
    page = families(fetch(served))
    assert only(page["DCGM_FI_DEV_XID_ERRORS"]) == 79
    assert page["rackrent_agent_xid_errors_total"] == [({"UUID": uuid, "xid": "79"}, 2.0)]


def test_a_library_without_a_readable_gpu_is_a_failure_not_an_idle_machine(served: str, tmp_path: Path) -> None:
    (tmp_path / "control.txt").write_text("999 nvmlDeviceGetHandleByIndex_v2 *\n")
    page = families(fetch(served))
    assert only(page["rackrent_agent_last_collect_success"]) == 0
    assert "DCGM_FI_DEV_GPU_UTIL" not in page


@pytest.mark.parametrize("token", ["", "wrong", "s3crets"])
def test_a_wrong_token_gets_nothing(served: str, token: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        fetch(served, token)
    refused.value.close()


def test_the_command_refuses_an_open_address_and_an_empty_token_file(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "agent", "metrics", *words]
        return subprocess.run(
            command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=30
        )

    refused = run("--listen", "0.0.0.0:22901")
    assert refused.returncode == 1
    assert "--token-file" in refused.stderr
    (tmp_path / "token").write_text("\n")
    assert "is empty" in run("--token-file", str(tmp_path / "token")).stderr
