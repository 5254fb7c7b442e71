"""The tables of drivers, CUDA, wheels and frameworks: their rules, and what a row that contradicts another does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from packaging.version import Version

from planner.catalogue.rows import DATA, CatalogueError
from planner.catalogue.software import Kernels
from planner.catalogue.software_tables import check_references, read_software, software
from planner.catalogue.symptoms import check_patterns, read_symptoms, symptoms


@pytest.mark.parametrize(
    ("capability", "compiled", "compilable"),
    [
        ((8, 9), True, False),
        ((10, 3), True, False),
        ((12, 1), True, True),
        ((13, 0), False, True),
        ((7, 0), False, False),
    ],
)
def test_compiled_code_runs_on_later_minors_and_ptx_on_anything_newer(capability, compiled, compilable) -> None:
    kernels = Kernels(cubins=((8, 6), (10, 0), (12, 0)), ptx=((12, 0),))
    assert kernels.compiled_for(capability) is compiled
    assert kernels.compilable_for(capability) is compilable


def test_the_default_build_is_cuda_13_since_torch_2_11() -> None:
    older, newer = software().wheel((2, 10), None), software().wheel((2, 11), None)
    assert older
    assert newer
    assert (older.tag, newer.tag) == ("cu128", "cu130")
    assert newer.floor == Version("580.65.06")


def changed(tmp_path: Path, file: str, old: str, new: str) -> Path:
    """A copy of the tables in which one cell says something else."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("torch_wheels.csv", "2.15,cu132,13.2,1", "2.15,cu139,13.9,1", "has no such CUDA"),
        ("torch_wheels.csv", "2.15,cu132,13.2,1", "2.15,cu132,13.2,0", "exactly one build"),
        ("torch_wheels.csv", "12.0+PTX,580.65.06", "12.0+PTX,570.26", "driver 570.26, but cuda_driver.csv says"),
        ("frameworks.csv", "13.0,12.9,,,==2.14.0", "13.0,12.9,,,==3.9.0", "vllm 0.33.0: torch_wheels.csv has no torch"),
        ("frameworks.csv", "13.0,12.9,,,==2.14.0", "13.0,12.7,,,==2.14.0", "has no CUDA"),
        (
            "frameworks.csv",
            "vllm,0.33.0,3.11,3.14",
            "vllm,0.33.0,3.14,3.11",
            "vllm 0.33.0, python: 3.14 comes after 3.11",
        ),
        ("arch.csv", "sm_70,9.0,12.9", "sm_70,13.0,12.9", "arch.csv, Volta 7.0, cuda"),
        (
            "frameworks.csv",
            "8.9; FlashAttention backend 8.0,580.65.06",
            "8.9; FlashAttention backend 8.0,570.26",
            "is not what its CUDA needs",
        ),
        ("driver_branches.csv", "570,12.8,12080", "570,12.7,12080", "branch 570 does not know"),
        (
            "arch.csv",
            "12.0,Blackwell (GeForce/PRO)",
            "12.2,Blackwell (GeForce/PRO)",
            "arch.csv has no compute capability",
        ),
    ],
)
def test_a_row_that_contradicts_another_is_named(tmp_path, file, old, new, message) -> None:
    with pytest.raises(CatalogueError, match=re.escape(message)):
        check_references(read_software(changed(tmp_path, file, old, new)))


@pytest.mark.parametrize(
    ("file", "old", "new", "column"),
    [
        ("torch_wheels.csv", "2.15,cu132,13.2", "2.15,cu131,13.2", "cuda_tag"),
        ("cuda_driver.csv", "12.8,0,12080", "12.8,0,12800", "api_version"),
        ("frameworks.csv", "==2.14.0", "like 2.14", "torch_requires"),
        ("arch.csv", "9.0,Hopper,sm_90,11.8", "9.0,Hopper,sm_90,old", "min_cuda_toolkit"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named(tmp_path, file, old, new, column) -> None:
    with pytest.raises(CatalogueError, match=rf"{re.escape(file)}, line \d+, {column}"):
        read_software(changed(tmp_path, file, old, new))


def test_two_symptoms_for_one_message_are_refused() -> None:
    first, second, *_ = symptoms().values()
    with pytest.raises(CatalogueError, match=second.id):
        check_patterns([first, type(second)(second.id, second.layer, first.pattern, *_rest(second))])


def _rest(symptom):
    return symptom.example, symptom.condition, symptom.addresses, symptom.confidence


def test_a_broken_expression_is_named(tmp_path) -> None:
    folder = changed(tmp_path, "symptoms.csv", r"(?P<found>\d+)", "(?P<found")
    with pytest.raises(CatalogueError, match=r"symptoms\.csv, line \d+, pattern"):
        read_symptoms(folder)


# What a package index is called, or where it keeps its wheels; the tables name builds by tag.
INDEX_WORDS = re.compile(
    r"py" r"pi\b|download\.py|wheels\.v|python" r"hosted|/whl/|/simple/|packages/stable", re.IGNORECASE
)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda path: path.name)
def test_the_tables_name_no_package_index(path) -> None:
    assert not INDEX_WORDS.findall(path.read_text(encoding="utf-8"))
