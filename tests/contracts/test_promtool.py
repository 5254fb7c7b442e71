"""promtool on every page of ours: each can be read, and all it says against one follows from names that are not ours to choose."""

from __future__ import annotations

import subprocess

import pytest

from agent.exposition import Page, add_gpus
from agent.exposition_host import add_host
from agent.metrics_server import Collector
from fleet.telemetry.giving.names import GPU_NAMES, HOST_NAMES
from fleet.telemetry.giving.read import GPU_READ
from fleet.telemetry.models import GpuLatest, HostLatest, MachineEvent
from fleet.telemetry.readings import GPU_COLUMNS
from fleet.telemetry.rollups.models import GpuStateTotal
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from tests.contracts.test_agents_page_is_scraped import INVENTORY, READ
from tests.fakes.nvml.compiled import CompiledNvml
from tests.fleet.telemetry.giving.conftest import NOW, machine, page_of  # noqa: F401  # fixtures
from tests.fleet.telemetry.scrape.pages import CARD
from tests.programs import needs

# dcgm-exporter's label, on every series of a GPU.
CAMEL_LABEL = "label names should be written in 'snake_case' not 'camelCase'"
TAKEN_OVER = ("DCGM_FI_", "node_")


def complaints(page: str) -> set[tuple[str, str]]:
    """(name, what is wrong), without what dcgm-exporter's and node_exporter's own pages are told too. A page that cannot be read fails."""
    done = subprocess.run(
        [needs("promtool"), "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    # 3: it could be read, and the linter has something to say.
    assert done.returncode in {0, 3}, done.stderr
    lines = [line.partition(" ") for line in (done.stdout + done.stderr).splitlines() if line]
    return {(name, text) for name, _, text in lines if not name.startswith(TAKEN_OVER)}


def test_a_page_that_is_no_metrics_fails():
    with pytest.raises(AssertionError):
        complaints("no metrics here\n")


def test_a_name_of_ours_that_breaks_a_rule_is_reported():
    assert complaints("# HELP rackrent_things Things.\n# TYPE rackrent_things counter\nrackrent_things 1\n")


def test_every_series_that_the_agent_can_have():
    page = Page()
    add_gpus(page, [{"uuid": CARD, **READ}], INVENTORY, {"Hostname": "node-1"})
    add_host(page)
    assert complaints(page.text()) == set()


def test_the_agents_page_as_it_is_served(tmp_path, monkeypatch):
    """Of a machine with eight GPUs and an XID, by the real library's stand-in."""
    library = CompiledNvml(tmp_path, "h100x8")
    for name, value in library.environment.items():
        monkeypatch.setenv(name, value)
    collector = Collector("Hostname")
    try:
        collector.page()
        library.control(f"xid 79 {library.uuids[0]}")
        text = collector.page()
    finally:
        collector.close()
    assert text.count("\nDCGM_FI_DEV_GPU_UTIL{") == 8
    assert "rackrent_agent_xid_errors_total{" in text
    assert complaints(text) == set()


def test_the_fleets_page(acme, machine, page_of):  # noqa: F811
    for gpu in machine.gpus.all():
        GpuStateTotal.objects.create(gpu=gpu, **dict.fromkeys(SECONDS_COLUMNS.values(), 300.0))
        MachineEvent.objects.create(instance=machine, gpu=gpu, at=NOW, kind="xid", code=79)
    health = {field: 1 for name in GPU_NAMES if (field := name.field) not in GPU_READ}
    GpuLatest.objects.update(**dict.fromkeys(GPU_COLUMNS, 1), health=health)
    HostLatest.objects.update(**{name.field: 1 for name in HOST_NAMES})
    page = page_of(acme)
    named = {name.name for name in (*GPU_NAMES, *HOST_NAMES)}
    assert {name for name in named if f"\n{name}{{" not in page} == set()
    assert complaints(page) == {("rackrent_gpu_state_seconds_total", CAMEL_LABEL)}
