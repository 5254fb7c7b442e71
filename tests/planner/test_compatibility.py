"""A stack against a machine: the level, the symptom that people would meet, and the fix."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path

import pytest

from planner.catalogue.gpus import MIB, gpus
from planner.catalogue.software_tables import software
from planner.catalogue.symptoms import symptoms
from planner.compatibility.checks import check_stack
from planner.compatibility.stacks import Finding, Machine, Needs, Stack, StackError, worst_level

with (Path(__file__).parent / "replay_cases.csv").open(encoding="utf-8", newline="") as file:
    CASES = list(csv.DictReader(file))


def machine(gpu: str = "h100-sxm-80", driver: str = "580.95.05", **more) -> Machine:
    return Machine(gpus()[gpu], driver, **more)


def hard(findings: tuple[Finding, ...]) -> list[str | None]:
    return [finding.symptom for finding in findings if finding.level in {"ptx-risk", "refused"}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_reported_and_constructed_cases_replay(case) -> None:
    findings = check_stack(machine(case["gpu"], case["driver"]), Stack(case["torch"], case["tag"] or None))
    assert hard(findings) == ([case["expected"]] if case["expected"] else [])


@pytest.mark.parametrize(
    ("driver", "level"),
    [("570.26", "full"), ("550.54.15", "minor"), ("525.60.13", "minor"), ("520.61.05", "refused")],
)
def test_three_levels_of_a_driver(driver, level) -> None:
    found = check_stack(machine(driver=driver), Stack("2.9.1", "cu128"), Needs(ptx=False))
    assert worst_level(found) == level


@pytest.mark.parametrize(("ptx", "level"), [(False, "minor"), (None, "ptx-risk"), (True, "refused")])
def test_minor_version_compatibility_does_not_cover_ptx(ptx, level) -> None:
    found = check_stack(machine(driver="550.54.15"), Stack("2.9.1", "cu128"), Needs(ptx=ptx))
    assert worst_level(found) == level


def test_a_part_that_only_ptx_reaches_needs_the_driver_of_that_cuda() -> None:
    # GB10 (12.1) would be compiled code; a future 13.0 part is reached by the PTX of 12.0 alone.
    newer = dataclasses.replace(gpus()["rtx-5090-32"], compute_capability=(13, 0))
    tables = software()
    future = dataclasses.replace(tables.architectures[12, 0], capability=(13, 0))
    tables = dataclasses.replace(tables, architectures={**tables.architectures, (13, 0): future})
    stack = Stack("2.12.1", "cu132")
    assert "ptx-unsupported-toolchain" in hard(check_stack(Machine(newer, "580.95.05"), stack, tables=tables))
    assert not hard(check_stack(Machine(newer, "595.45.04"), stack, tables=tables))


@pytest.mark.parametrize(
    ("gpu", "driver", "key"),
    [
        ("b200-sxm-180", "550.144.03", "compatibility.driver_before_gpu"),
        ("v100-sxm2-32", "590.48.01", "compatibility.driver_after_gpu"),
    ],
)
def test_a_driver_from_before_or_after_the_gpus_time_is_refused(gpu, driver, key) -> None:
    found = check_stack(machine(gpu, driver), Stack("2.14.1", "cu126"))
    assert found[0].reason.key == key
    assert found[0].level == "refused"


@pytest.mark.parametrize(
    ("stack", "needs", "symptom"),
    [
        (Stack("2.14.1", None, {"vllm": "0.26.0"}), None, None),  # vLLM pins another torch
        (Stack("2.11.0", None, {"colossalai": "0.5.0"}), None, None),
        (Stack("2.9.1", "cu128", {"tensorrt-llm": "1.2.1"}), None, "libcudart-missing"),
        (Stack("2.10.0", "cu128", system_cudnn="8.9.7"), None, "cudnn-version-clash"),
        (Stack("2.10.0", "cu128", system_cudnn="9.5.1"), None, "cudnn-version-clash"),
        (Stack("2.10.0", "cu128", system_nccl="2.21.5"), None, "nccl-symbol"),
        (Stack("2.10.0", "cu128", {"deepspeed": "0.19.6"}, nvcc="11.8"), None, "deepspeed-cuda-mismatch"),
        (Stack("2.14.1", "cu130", {"deepspeed": "0.19.6"}, nvcc="13.2"), None, "deepspeed-cuda-mismatch"),
        (Stack("2.10.0", "cu128", nvcc="11.0"), None, "nvcc-unsupported-arch"),
        (Stack("2.10.0", "cu128", image_cuda="13.2"), None, "container-requirement"),
        (Stack("2.10.0", "cu128", {"bitsandbytes": "0.50.2"}), None, "ok"),
        (Stack("2.10.0", "cu128", system_cudnn="9.12.0"), None, "ok"),
        (Stack("2.10.0", "cu128", python="3.9"), None, None),
        (Stack("2.10.0", "cu999"), None, None),
    ],
)
def test_what_does_not_go_together_is_refused(stack, needs, symptom) -> None:
    found = check_stack(machine(), stack, needs)
    if symptom == "ok":
        assert worst_level(found) == "full"
        return
    refused = [finding for finding in found if finding.level == "refused"]
    assert symptom in [finding.symptom for finding in refused]


@pytest.mark.parametrize(
    ("gpu", "tag", "needs", "symptom"),
    [
        ("t4-16", "cu126", Needs(dtype="bf16"), "bf16-unsupported"),
        ("t4-16", "cu126", Needs(flash_attention=True), "flash-attn-arch"),
        ("a100-sxm-80", "cu126", Needs(dtype="fp8"), None),
        ("p40-24", "cu126", Needs(weight_format="int8"), None),
        ("t4-16", "cu126", Needs(weight_format="fp8"), None),
    ],
)
def test_types_that_the_gpu_does_not_have_are_refused(gpu, tag, needs, symptom) -> None:
    assert hard(check_stack(machine(gpu), Stack("2.10.0", tag), needs)) == [symptom]


def test_fp8_weights_on_ampere_save_memory_only() -> None:
    found = check_stack(machine("a100-sxm-80"), Stack("2.10.0", "cu128"), Needs(weight_format="fp8"))
    assert [(each.level, each.reason.key) for each in found[1:]] == [("minor", "compatibility.fp8_weights_only")]


def test_several_geforce_cards_have_no_peer_access_and_small_shared_memory_stops_nccl() -> None:
    cards = machine("rtx-4090-24", gpus=4, shared_memory_bytes=64 * MIB)
    symptoms_found = [each.symptom for each in check_stack(cards, Stack("2.10.0", "cu128"))]
    assert symptoms_found == [None, "rtx40-p2p", "nccl-shm"]
    assert hard(check_stack(machine(gpus=8, fabric_manager_runs=False), Stack("2.10.0"))) == ["fabric-802"]


def test_compatibility_libraries_are_refused_on_geforce_only() -> None:
    stack = Stack("2.10.0", "cu128", image_cuda="13.1", image_has_compat_libraries=True)
    assert hard(check_stack(machine("rtx-4090-24"), stack)) == ["forward-compat-804"]
    assert hard(check_stack(machine(), stack)) == []


def test_a_framework_with_its_own_cuda_is_held_against_the_driver() -> None:
    stack = Stack(None, frameworks={"paddlepaddle-gpu": "3.2.0"})
    assert worst_level(check_stack(machine(), stack)) == "full"
    assert hard(check_stack(machine("a100-sxm-80", "450.51.05"), stack)) == ["driver-insufficient"]


def test_other_makers_are_not_judged_by_cuda_tables() -> None:
    assert [each.reason.key for each in check_stack(machine("mi300x-192", "6.4"), Stack("2.10.0"))] == [
        "compatibility.not_nvidia"
    ]


@pytest.mark.parametrize(
    ("driver", "stack", "field"),
    [
        ("latest", Stack("2.10.0"), "driver"),
        ("580.95.05", Stack("two"), "torch"),
        ("580.95.05", Stack("2.10.0", python="three"), "python"),
        ("580.95.05", Stack("2.10.0", frameworks={"vllm": "newest!"}), "vllm"),
    ],
)
def test_a_version_that_cannot_be_read_names_its_field(driver, stack, field) -> None:
    with pytest.raises(StackError, match=field) as caught:
        check_stack(machine(driver=driver), stack)
    assert caught.value.field == field


def test_every_symptom_that_a_finding_names_is_in_the_table() -> None:
    source = "".join(path.read_text() for path in Path("planner/compatibility").glob("*.py"))
    named = {word for word in symptoms() if f'"{word}"' in source}
    assert len(named) >= 15
    for word in re.findall(r'symptom(?:="|\s=\s")([\w-]+)"', source):
        assert word in symptoms()
