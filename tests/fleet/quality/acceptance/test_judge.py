"""Promised against measured: what passes, what is short, what is something else, and what nobody can say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleet.quality.acceptance.figures import Judgement, Promised, Reference, Result
from fleet.quality.acceptance.judge import judge
from fleet.quality.acceptance.measured import Measured
from fleet.quality.acceptance.reference import link_bytes_per_second, reference_of
from tests.fleet.quality.acceptance.machines import PROMISED, measured, with_cards

REFERENCE = reference_of("L40S", memory_mib=46068)


def judged(found: Any, promised: Promised = PROMISED, reference: Reference = REFERENCE) -> Judgement:
    return judge(promised, Measured(found), reference)


def bad(told: Judgement) -> dict[str, str]:
    return {check.name: check.result.value for check in told.checks if check.result in (Result.SHORT, Result.WRONG)}


def test_a_machine_as_rented_passes() -> None:
    told = judged(measured())
    assert (told.verdict, bad(told)) == ("pass", {})
    results = {check.name: check.result for check in told.checks}
    assert {results[name] for name in ("gpu_model", "pcie_width", "host_to_device", "matrix", "ram", "disk")} == {"ok"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (with_cards({"name": "NVIDIA L40"}, {"name": "NVIDIA L40"}), {"gpu_model": "wrong"}),
        (with_cards({}, {"name": "NVIDIA GeForce RTX 4090"}), {"gpu_model": "wrong"}),
        (with_cards({}), {"gpu_count": "wrong"}),
        (measured(gpu={"count": 0, "gpus": []}), {"gpu_count": "wrong"}),
        (with_cards({}, {"memory_total_bytes": 24 << 30}), {"gpu_memory": "wrong"}),
    ],
)
def test_other_cards_fewer_or_smaller_ones_are_not_what_was_rented(found: Any, expected: Any) -> None:
    told = judged(found)
    assert (told.verdict, bad(told)) == ("not_as_rented", expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (with_cards({}, {"pcie_width": 8, "host_to_device_bytes_per_second": 12.3e9}), {"pcie_width", "host_to_device"}),
        (with_cards({}, {"pcie_generation": 3, "host_to_device_bytes_per_second": 12.3e9}), {"pcie_generation", "host_to_device"}),
        (with_cards({}, {"matrix_flops_per_second": 0.08e15}), {"matrix", "slowest_gpu"}),
        (with_cards({}, {}, {"matrix_flops_per_second": 0.17e15}), {"slowest_gpu"}),
        (measured(cpu={"count": 20, "effective_cores": 12.0}), {"vcpus", "cpu_delivered"}),
        (measured(cpu={"limit_cores": 8.0}), {"vcpus"}),
        (measured(cpu={"effective_cores": 9.0}), {"cpu_delivered"}),
        (measured(memory={"total_bytes": 200 << 30}), {"ram"}),
        (measured(disk={"size_bytes": 200 * 10**9}), {"disk"}),
    ],
)  # fmt: skip
def test_what_lacks_something_is_short_of_it(found: Any, expected: set[str]) -> None:
    told = judged(found)
    assert (told.verdict, set(bad(told))) == ("short", expected)


@pytest.mark.parametrize(
    "found",
    [
        measured(memory={"total_bytes": 300 << 30}),
        measured(disk={"size_bytes": 465 * 10**9}),
        # Two threads on one core.
        measured(cpu={"effective_cores": 20.0}),
        with_cards({}, {"memory_total_bytes": 44 << 30}),
        # More than was paid for is no complaint.
        with_cards({}, {}, {}),
    ],
)
def test_what_is_usual_passes(found: Any) -> None:
    assert judged(found).verdict == "pass"


def test_an_idle_link_is_not_held_against_the_card() -> None:
    """Links slow down to generation 1 while nothing is sent: then only what both ends could do is compared."""
    idle = with_cards({"pcie_generation": 1}, {"pcie_generation": 1})
    idle["gpu"]["under_load"] = False
    assert judged(idle).verdict == "pass"
    idle["gpu"]["under_load"] = True
    assert set(bad(judged(idle))) == {"pcie_generation"}


def test_a_processor_that_was_busy_before_the_test_proves_nothing() -> None:
    assert judged(measured(cpu={"effective_cores": 9.0, "load_before": 30.0})).verdict == "pass"


def test_a_disk_elsewhere_counts_as_well_as_the_one_that_was_written_to() -> None:
    assert judged(measured(disk={"size_bytes": 40 * 10**9, "largest_bytes": 500 * 10**9})).verdict == "pass"


@pytest.mark.parametrize(
    "found",
    [
        {},
        measured(gpu=None),
        {"not_measured": {"gpu": "NVML cannot be used"}},
        with_cards({"name": None}, {"name": None}),
        with_cards({"name": "unknown GPU"}, {"name": "unknown GPU"}),
    ],
)
def test_what_was_not_seen_is_not_clear_and_nobodys_fault(found: Any) -> None:
    told = judged(found)
    assert (told.verdict, bad(told)) == ("unclear", {})


def test_parts_that_were_not_measured_are_no_zeros() -> None:
    found = with_cards({"matrix_flops_per_second": None, "host_to_device_bytes_per_second": None, "pcie_width": None})
    del found["disk"], found["network"]
    told = judged(found, replace(PROMISED, gpu_count=1))
    assert (told.verdict, bad(told)) == ("pass", {})
    assert all(check.measured is None for check in told.checks if check.name in ("matrix", "disk", "pcie_width"))


def test_a_provider_that_promises_nothing_is_held_to_nothing() -> None:
    told = judged(measured(), Promised(), Reference())
    assert (told.verdict, bad(told)) == ("unclear", {})


def test_a_machine_without_gpus_is_judged_by_the_rest() -> None:
    assert judged(measured(gpu=None), Promised(vcpus=40, ram_mib=320 * 1024), Reference()).verdict == "pass"


def test_half_the_disk_of_others_of_the_kind_is_short() -> None:
    peers = {"disk_read": 3.0e9, "disk_write": 1.9e9, "disk_read_iops": 400_000.0}
    slow = measured(disk={"read_bytes_per_second": 1.5e9, "read_iops": 200_000})
    told = judged(slow, reference=replace(REFERENCE, peers=peers))
    assert (told.verdict, set(bad(told))) == ("short", {"disk_read", "disk_read_iops"})


def test_the_way_to_here_is_never_held_against_a_machine() -> None:
    told = judged(
        measured(network={"download_bytes_per_second": 1.0}), reference=replace(REFERENCE, peers={"download": 1e9})
    )
    assert told.verdict == "pass"


@pytest.mark.parametrize(
    "hostile",
    [
        {"gpu": "eight", "cpu": [], "disk": None, "memory": {"total_bytes": "much"}},
        {"gpu": {"count": -1, "gpus": [1, None, {"name": 7, "memory_total_bytes": True, "pcie_width": -3}]}},
        {"gpu": {"count": True, "gpus": {"0": {}}}, "cpu": {"count": float("nan"), "effective_cores": float("inf")}},
        {"gpu": {"count": 10**30, "gpus": [{"matrix_flops_per_second": 1e300}]}},
    ],
)
def test_anything_an_agent_sends_is_judged_without_a_fault(hostile: Any) -> None:
    told = judged(hostile)
    assert told.verdict in ("unclear", "not_as_rented")


def test_references_come_from_the_planners_cards() -> None:
    h100 = reference_of("H100 SXM", memory_mib=81559)
    assert (h100.pcie_generation, h100.pcie_width) == (5, 16)
    assert h100.matrix_flops_per_second["bfloat16"] == pytest.approx(989.4e12)
    assert reference_of("T4").matrix_flops_per_second.keys() <= {"float16"}
    assert reference_of("Quantum 9000") == Reference()
    assert link_bytes_per_second(4, 16) == pytest.approx(31.5e9, rel=0.01)
    assert link_bytes_per_second(None, 16) is None
