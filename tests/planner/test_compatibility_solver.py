"""The newest stack that works, for a GPU, a driver and the frameworks that are wanted."""

from __future__ import annotations

import pytest

from planner.catalogue.gpus import gpus
from planner.compatibility.checks import check_stack
from planner.compatibility.solver import solve_stack
from planner.compatibility.stacks import Machine, Stack


def solved(gpu: str, driver: str, *frameworks: str, python: str | None = None) -> Stack:
    found = solve_stack(Machine(gpus()[gpu], driver), frameworks, python=python)
    assert found
    return found.stack


@pytest.mark.parametrize(
    ("gpu", "driver", "frameworks", "torch", "tag"),
    [
        ("h100-sxm-80", "595.58.03", (), "2.15.0", "cu132"),
        ("h100-sxm-80", "570.86.10", (), "2.14.1", "cu126"),
        ("rtx-5090-32", "570.124.06", (), "2.11.0", "cu128"),
        ("v100-sxm2-32", "580.95.05", (), "2.14.1", "cu126"),
        ("h100-sxm-80", "580.95.05", ("colossalai",), "2.5.1", "cu124"),
        ("h100-sxm-80", "580.95.05", ("tensorrt-llm",), "2.9.1", "cu130"),
        # A wheel of flash-attn, rather than hours of compiling for a newer torch.
        ("h100-sxm-80", "580.95.05", ("flash-attn",), "2.10.0", "cu128"),
    ],
)
def test_the_newest_torch_and_its_build(gpu, driver, frameworks, torch, tag) -> None:
    found = solved(gpu, driver, *frameworks)
    assert (found.torch, found.cuda_tag) == (torch, tag)


@pytest.mark.parametrize(
    ("gpu", "driver", "vllm"),
    [
        ("h100-sxm-80", "580.95.05", "0.33.0"),
        ("h100-sxm-80", "570.86.10", "0.26.0"),
        ("v100-sxm2-32", "580.95.05", "0.14.1"),
        # An older release that the driver knows all of, before a newer one that may need PTX.
        ("a100-sxm-80", "550.54.15", "0.9.2"),
    ],
)
def test_the_newest_vllm(gpu, driver, vllm) -> None:
    assert solved(gpu, driver, "vllm").frameworks == {"vllm": vllm}


@pytest.mark.parametrize(
    ("gpu", "driver", "frameworks"),
    [
        ("b200-sxm-180", "550.144.03", ()),
        ("rtx-5090-32", "580.95.05", ("colossalai",)),
        ("p40-24", "580.95.05", ("vllm",)),
        ("mi300x-192", "6.4", ()),
    ],
)
def test_nothing_works(gpu, driver, frameworks) -> None:
    assert solve_stack(Machine(gpus()[gpu], driver), frameworks) is None


@pytest.mark.parametrize("driver", ["470.82.01", "535.104.05", "550.54.15", "570.124.06", "580.95.05", "595.58.03"])
@pytest.mark.parametrize("frameworks", [(), ("vllm",), ("deepspeed", "bitsandbytes"), ("paddlepaddle-gpu",)])
def test_what_is_proposed_passes_the_checks(driver, frameworks) -> None:
    for gpu in gpus().values():
        found = solve_stack(Machine(gpu, driver), frameworks, python="3.10")
        if found:
            assert found.level != "refused"
            assert found.findings[: 1 + len(frameworks)]
            assert "refused" not in {each.level for each in check_stack(Machine(gpu, driver), found.stack)}


def test_a_cap_of_one_framework_holds_the_other_back() -> None:
    found = solved("h100-sxm-80", "580.95.05", "colossalai", "vllm")
    assert found.frameworks == {"colossalai": "0.5.0", "vllm": "0.7.3"}


def test_python_bounds_the_choice() -> None:
    assert solved("h100-sxm-80", "595.58.03", python="3.10").torch == "2.14.1"
    assert solved("h100-sxm-80", "595.58.03", python="3.11").torch == "2.15.0"
