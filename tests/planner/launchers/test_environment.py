"""The script that installs: the right build for driver and GPU, no address of an index, and a stop where something does not fit."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner.catalogue.gpus import gpus
from planner.catalogue.software_tables import software
from planner.launchers.base import Artefact, Order, Place, TrainingOrder
from planner.launchers.packages import PACKAGES
from planner.launchers.registry import LAUNCHERS, make_artefact
from planner.runs import Layout
from tests.planner.launchers.orders import ORDERS, TRAINING_ORDERS, serving, training


def script(key: str, order: Order) -> str:
    made = make_artefact(LAUNCHERS[key], order)
    assert isinstance(made, Artefact)
    [text] = [file.text for file in made.files if file.name == "install.sh"]
    return text


def on(gpu: str, driver: str | None, gpus_per_node: int = 2) -> TrainingOrder:
    return replace(training(), place=Place(gpus()[gpu], gpus_per_node, driver=driver))


@pytest.mark.parametrize(
    ("gpu", "driver", "torch", "tag"),
    [
        ("h100-sxm-80", "595.58.03", "2.15.0", None),
        ("h100-sxm-80", "570.124.06", "2.14.1", "cu126"),
        ("rtx-5090-32", "570.124.06", "2.11.0", "cu128"),
        ("v100-sxm2-32", "535.104.05", "2.14.1", "cu126"),
        ("b300-sxm-270", None, "2.15.0", None),
        ("a100-sxm-80", None, "2.14.1", "cu126"),
    ],
)
def test_torch_is_the_build_for_driver_and_gpu(gpu, driver, torch, tag) -> None:
    order = on(gpu, driver)
    if gpu.startswith("v100"):
        order = replace(order, run=replace(order.run, compute_dtype="fp16"))
    text = script("torchrun", order)
    assert f"torch=={torch}" in text
    assert ("TORCH_INDEX_URL" in text) is (tag is not None)
    assert tag is None or f"the wheel index of PyTorch for {tag}" in text


@pytest.mark.parametrize("name", ORDERS)
def test_no_script_names_an_index(name) -> None:
    for key, launcher in LAUNCHERS.items():
        made = make_artefact(launcher, ORDERS[name])
        if isinstance(made, Artefact):
            for file in made.files:
                if file.name == "install.sh":
                    assert "://" not in file.text, key


def test_an_index_that_is_asked_for_is_named_before_anything_is_installed(tmp_path) -> None:
    printed = run_with_driver(tmp_path, script("torchrun", on("h100-sxm-80", "570.124.06")), "570.124.06")
    assert printed.returncode != 0
    assert "set it to the address of the wheel index of PyTorch for cu126" in printed.stderr
    assert "torch==" not in printed.stdout


def run_with_driver(
    folder: Path, text: str, driver: str, shared_kib: int = 1_000_000
) -> subprocess.CompletedProcess[str]:
    """The script on a machine whose programs only say what they were asked for."""
    programs = folder / "bin"
    programs.mkdir()
    activate = folder / "activate"
    activate.touch()
    for name, body in {
        "nvidia-smi": f"echo {driver}",
        "df": f"echo Filesystem; echo shm {shared_kib} 0",
        "python": 'echo "python $*"',
        "python3": f'mkdir -p .venv/bin; cp {activate} .venv/bin/activate; echo "python3 $*"',
    }.items():
        path = programs / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    (folder / "install.sh").write_text(text)
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    return subprocess.run(
        ["bash", "install.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("driver", "runs"),
    [
        ("580.95.05", True),
        ("580.65.06", True),
        ("590.48.01", True),
        ("570.124.06", False),
        ("580.65.05", False),
        ("99.1", False),
    ],
)
def test_an_older_driver_is_refused_on_the_machine(tmp_path, driver, runs) -> None:
    printed = run_with_driver(tmp_path, script("torchrun", on("h100-sxm-80", "580.95.05")), driver)
    assert (printed.returncode == 0) is runs, printed.stderr
    assert ("pip install" in printed.stdout) is runs
    assert runs or f"Driver {driver} is older than 580.65.06" in printed.stderr


def test_small_shared_memory_is_refused_where_several_gpus_need_it(tmp_path) -> None:
    order = on("h100-sxm-80", "580.95.05")
    printed = run_with_driver(tmp_path, script("torchrun", order), "580.95.05", shared_kib=65536)
    assert printed.returncode == 1
    assert "--shm-size=16g" in printed.stderr
    alone = replace(order, run=replace(order.run, layout=Layout()), place=replace(order.place, gpus_per_node=1))
    assert "/dev/shm" not in script("torchrun", alone)


def test_what_the_cards_need_is_in_the_environment(tmp_path) -> None:
    printed = run_with_driver(
        tmp_path,
        script("torchrun", TRAINING_ORDERS["geforce"]).replace("TORCH_INDEX_URL:?", "TORCH_INDEX_URL:="),
        "570.124.06",
    )
    assert printed.returncode == 0, printed.stderr
    lines = (tmp_path / ".venv/bin/activate").read_text().splitlines()
    assert lines == [
        "export NCCL_P2P_DISABLE=1",
        "export NCCL_IB_DISABLE=1",
        "export PYTORCH_ALLOC_CONF=expandable_segments:True",
    ]


def test_frameworks_and_packages_are_pinned() -> None:
    text = script("deepspeed", on("h100-sxm-80", "580.95.05"))
    assert "deepspeed==0.19.8 --no-build-isolation" in text
    assert f"transformers=={PACKAGES['transformers']}" in text
    assert "bitsandbytes==0.50.2" in script("torchrun", TRAINING_ORDERS["qlora"])
    assert "llmcompressor==0.14.0.1" in script("quantize", serving(weight_format="awq-int4"))
    # ColossalAI pins transformers itself: what stands beside it is resolved together with it.
    assert "pip install datasets colossalai==0.5.0" in script("colossalai", on("h100-sxm-80", "580.95.05"))


def test_the_versions_are_those_that_the_tests_run() -> None:
    lines = Path("requirements-launchers.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert {name: pinned[name] for name in PACKAGES} == PACKAGES
    # DeepSpeed is built after them.
    newest = software().releases["deepspeed"][0].version
    assert f"deepspeed=={newest}\n" in Path("Makefile").read_text()


def test_without_a_stack_there_is_a_note_instead_of_a_script() -> None:
    made = make_artefact(LAUNCHERS["torchrun"], TRAINING_ORDERS["amd"])
    assert isinstance(made, Artefact)
    assert made.notes[0].key == "launch.note.no_stack"
    assert "install.sh" not in [file.name for file in made.files]
