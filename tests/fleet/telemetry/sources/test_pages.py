"""Samples of a Prometheus become the readings that the same pages would have given."""

from __future__ import annotations

import pytest

from fleet.telemetry.sources.pages import machine_of, pages_of, readings_of
from tests.fleet.telemetry.sources.conftest import CARD, gpu_series, one

AT = 1_795_999_000.0


def readings(*series, after=0.0, label="node-1"):
    return readings_of(pages_of(series, gpu_label="Hostname", host_label="instance")[label], after=after)


def test_every_scrape_is_a_sample_at_its_own_moment():
    found = readings(gpu_series([(AT + 15, 40.0), (AT, 30.0)]), gpu_series([(AT, 1.5)], name="DCGM_FI_DEV_POWER_USAGE"))
    assert [(sample.at, sample.gpus[0].utilization_percent) for sample in found.samples] == [
        (AT, 30.0),
        (AT + 15, 40.0),
    ]
    assert [sample.gpus[0].power_watts for sample in found.samples] == [1.5, None]
    assert found.samples[0].gpus[0].uuid == CARD
    assert found.sample_seconds == 15
    found.stand_for(15)
    assert {sample.interval_seconds for sample in found.samples} == {15}
    assert [row.name for row in found.inventory] == ["NVIDIA H100"]


def test_a_pause_of_the_exporter_is_a_gap():
    found = readings(gpu_series([(AT, 30.0), (AT + 600, 30.0)]))
    assert [sample.at for sample in found.samples] == [AT, AT + 600]


def test_what_was_read_before_only_says_where_counters_stood():
    series = [
        one(
            "node_disk_read_bytes_total",
            [(AT, 0.0), (AT + 10, 1000.0), (AT + 20, 3000.0)],
            device="sda",
            instance="node-1:9100",
        ),
        one("node_boot_time_seconds", [(AT, 1.0), (AT + 10, 1.0), (AT + 20, 1.0)], instance="node-1:9100"),
        one("node_load1", [(AT, 1.0), (AT + 10, 1.0), (AT + 20, 2.0)], instance="node-1:9100"),
    ]
    found = readings(*series, after=AT + 10)
    assert [(sample.at, sample.host.load1) for sample in found.samples] == [(AT + 20, 2.0)]


def test_an_xid_that_was_there_before_is_no_news():
    before = gpu_series([(AT, 31.0), (AT + 10, 31.0)], name="DCGM_FI_DEV_XID_ERRORS")
    util = gpu_series([(AT, 1.0), (AT + 10, 1.0), (AT + 20, 1.0)])
    after = gpu_series([(AT + 20, 79.0)], name="DCGM_FI_DEV_XID_ERRORS")
    assert readings(before, util).events == []
    assert [event.code for event in readings(before, util, after).events] == [79]


def test_exporters_of_one_machine_are_told_apart_by_their_target():
    found = readings(
        gpu_series([(AT, 30.0)]),
        one("node_load1", [(AT, 4.0)], Hostname="", instance="node-1:9100", job="node"),
    )
    assert sorted((bool(sample.gpus), bool(sample.host)) for sample in found.samples) == [(False, True), (True, False)]


def test_a_page_without_a_gpu_is_a_problem_and_not_an_idle_machine():
    found = readings(gpu_series([(AT, 30.0)], UUID=""))
    assert found.samples == []
    assert found.problem.code == "no_gpus"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"Hostname": "node-1", "instance": "10.0.0.7:9400"}, "node-1"),
        ({"hostname": "node-1", "instance": "10.0.0.7:9400"}, "node-1"),
        ({"instance": "10.0.0.7:9400"}, "10.0.0.7"),
        ({"instance": "[fd00::7]:9400"}, "fd00::7"),
        ({"instance": "node-1"}, "node-1"),
        ({"job": "dcgm"}, ""),
    ],
)
def test_which_label_names_the_machine(labels, expected):
    assert machine_of(labels, chosen="Hostname") == expected


def test_a_chosen_label_goes_first():
    assert machine_of({"Hostname": "pod-7", "kubernetes_node": "node-1"}, chosen="kubernetes_node") == "node-1"
