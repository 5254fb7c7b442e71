"""One name per GPU, whatever NVML or a provider calls it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fleet.providers.gpus import canonical

FACTS = Path(__file__).resolve().parents[4] / "shared" / "data" / "gpus.csv"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("H100 (80 GB SXM5)", "H100 SXM"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("RTX_4090", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Server"),
        ("Tesla T4", "T4"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_known_names(raw, name):
    assert canonical(raw) == name


def test_the_chip_alone_is_told_apart_by_form_and_memory():
    assert canonical("A100", memory_mib=40960, form="sxm") == "A100 SXM 40 GB"
    assert canonical("A100", memory_mib=81920, form="sxm") == "A100 SXM 80 GB"
    assert canonical("H100", memory_mib=81920, form="sxm") == "H100 SXM"


@pytest.mark.parametrize("raw", ["A100", "H100", "Quantum X-9000", "", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"])
def test_what_does_not_name_one_model_stays_as_it_is(raw):
    assert canonical(raw) == raw


def test_every_name_of_nvml_that_is_on_record_is_known():
    if not FACTS.exists():
        pytest.skip("the table of GPUs lies beside the repository, and is not there")
    with FACTS.open() as file:
        names = {row["nvml_name"] for row in csv.DictReader(file)} - {""}
    unknown = {name for name in names if canonical(name) == name}
    assert not unknown
