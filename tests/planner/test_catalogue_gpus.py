"""The GPUs of the catalogue: what the file says, in base units, and what a wrong cell does."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.catalogue.gpus import GIB, gpus
from planner.catalogue.rows import CatalogueError, read_rows


def test_rates_and_memory_are_in_base_units() -> None:
    h100 = gpus()["h100-sxm-80"]
    assert h100.rate("bf16") == pytest.approx(989.4e12)
    assert h100.memory_bandwidth == pytest.approx(3.35e12)
    assert h100.compute_capability == (9, 0)


def test_memory_of_the_driver_is_less_than_the_label() -> None:
    for gpu in gpus().values():
        assert 0.9 < gpu.memory_bytes / (gpu.label_gib * GIB) < 1.03, gpu.id


def test_a_cell_that_is_no_number_names_file_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "parts.csv").write_text("id,size\na,many\n", encoding="utf-8")
    [row] = read_rows("parts.csv", folder=tmp_path)
    with pytest.raises(CatalogueError, match=r"parts\.csv, line 2, size: 'many' is no number"):
        row.number_of("size")
