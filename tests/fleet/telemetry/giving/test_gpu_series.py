"""DCGM's names and units for what was read; what was not read, or long ago, is absent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent.exposition import _PROFILED_PCIE, DCGM
from fleet.inventory.models import GPU
from fleet.telemetry.giving.names import GPU_NAMES
from fleet.telemetry.models import MachineEvent
from tests.fleet.telemetry.giving.conftest import NOW, give_reading, series, values


def test_units_are_dcgms(acme, machine, page_of):
    found = series(page_of(acme))
    first = {name: rows[0][1] for name, rows in found.items()}
    assert first["DCGM_FI_DEV_GPU_UTIL"] == 97
    assert first["DCGM_FI_DEV_FB_USED"] == 60 * 1024
    assert first["DCGM_FI_DEV_FB_FREE"] == 19 * 1024
    assert first["DCGM_FI_DEV_FB_TOTAL"] == 80 * 1024
    assert first["DCGM_FI_DEV_POWER_USAGE"] == 612.5
    assert first["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == 5_000_000
    assert first["DCGM_FI_PROF_SM_ACTIVE"] == 0.875
    assert first["DCGM_FI_PROF_PCIE_RX_BYTES"] == 2e9
    assert first["DCGM_FI_DEV_ROW_REMAP_FAILURE"] == 0


def test_one_series_per_gpu_with_dcgms_labels_and_ours(acme, machine, page_of):
    rows = series(page_of(acme))["DCGM_FI_DEV_GPU_UTIL"]
    assert [labels["gpu"] for labels, _ in rows] == ["0", "1"]
    assert rows[0][0] == {
        "gpu": "0",
        "UUID": machine.gpus.get(index=0).uuid,
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "node-1",
        "instance": "train-01",
        "instance_id": str(machine.pk),
        "provider": "manual",
        "project": "vision",
    }


def test_names_and_units_are_those_of_our_agents_own_page():
    ours: Any = {name.name: (name.kind, name.field, pytest.approx(name.factor), name.description) for name in GPU_NAMES}
    agents = {
        name: (kind, field, factor, text) for name, (kind, field, factor, text) in (DCGM | _PROFILED_PCIE).items()
    }
    assert {name: ours[name] for name in agents} == agents


def test_what_was_not_read_is_absent(acme, machine, page_of):
    give_reading(machine.gpus.get(index=0), utilization_percent=None, sm_activity=None, memory_reserved_bytes=None)
    page = page_of(acme)
    assert list(values(page, "DCGM_FI_DEV_GPU_UTIL")) == [97]
    assert len(list(values(page, "DCGM_FI_DEV_POWER_USAGE"))) == 2
    assert len(list(values(page, "DCGM_FI_DEV_FB_FREE"))) == 1
    assert "DCGM_FI_DEV_MEMORY_TEMP" not in page
    assert len(list(values(page, "DCGM_FI_PROF_PCIE_RX_BYTES"))) == 1


def test_old_readings_and_lost_gpus_are_absent(acme, machine, page_of):
    give_reading(machine.gpus.get(index=0), age=timedelta(seconds=31))
    give_reading(machine.gpus.get(index=1), lost=True)
    assert "DCGM_FI" not in page_of(acme)


def test_an_agent_that_reports_seldom_is_not_old_in_between(acme, machine, page_of):
    give_reading(machine.gpus.get(index=0), age=timedelta(seconds=70))
    machine.agent.report_seconds = 60
    machine.agent.save()
    assert len(list(values(page_of(acme), "DCGM_FI_DEV_GPU_UTIL"))) == 2


def test_old_host_readings_are_absent(acme, machine, page_of):
    assert list(values(page_of(acme), "rackrent_host_cpu_percent")) == [34]
    assert list(values(page_of(acme, now=NOW + timedelta(minutes=1)), "rackrent_host_cpu_percent")) == []


def test_the_newest_xid_of_a_day_is_shown(acme, machine, page_of):
    gpu = machine.gpus.get(index=1)
    for hours, code in ((30, 48), (5, 31), (2, 79)):
        MachineEvent.objects.create(instance=machine, gpu=gpu, at=NOW - timedelta(hours=hours), kind="xid", code=code)
    rows = series(page_of(acme))["DCGM_FI_DEV_XID_ERRORS"]
    assert [(labels["gpu"], value) for labels, value in rows] == [("1", 79)]
    assert "XID" not in page_of(acme, now=NOW + timedelta(days=1))


def test_mig_instances_of_both_sources_are_told_apart(acme, machine, page_of):
    card = machine.gpus.get(index=0)
    cut = {"instance": machine, "index": 0, "name": card.name, "mig_parent_uuid": card.uuid, "mig_profile": "1g.10gb"}
    for uuid in (f"{card.uuid}/1", f"{card.uuid}/2", "MIG-7", f"{card.uuid}/x/1"):
        give_reading(GPU.objects.create(uuid=uuid, **cut))
    rows = series(page_of(acme))["DCGM_FI_DEV_FB_USED"]
    marks = {(labels["UUID"], labels.get("GPU_I_ID"), labels.get("GPU_I_PROFILE")) for labels, _ in rows}
    assert {(card.uuid, "1", "1g.10gb"), (card.uuid, "2", "1g.10gb"), ("MIG-7", None, "1g.10gb")} < marks
    assert len(marks) == len(rows) == 6


def test_a_hostile_name_stays_in_its_label(acme, machine, page_of):
    evil = 'node"} 1\nfake_metric 7\\'
    machine.agent.hostname = evil
    machine.agent.save()
    found = series(page_of(acme))
    assert "fake_metric" not in found
    assert found["DCGM_FI_DEV_GPU_UTIL"][0][0]["Hostname"] == evil


def test_another_teams_machines_are_not_on_it(rival, machine, page_of):
    assert page_of(rival) == ""
