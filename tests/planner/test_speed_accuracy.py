"""Predicted against measured speeds, where the measurements are at hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean, median

import pytest

from tests.bench.planner_rows import Skipped, read_measured
from tests.bench.planner_speed import KINDS, predict_speed

ROWS = Path(__file__).resolve().parents[3] / "shared" / "measured" / "planner_measured.csv"
# Mean over the sources of the median absolute error, in per cent.
AIMS = {"train_throughput": 12, "mfu": 12, "infer_throughput": 20}

pytestmark = pytest.mark.skipif(not ROWS.exists(), reason="the measured rows are not on this machine")


@pytest.fixture(scope="module")
def errors() -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {kind: defaultdict(list) for kind in KINDS}
    for row in read_measured(ROWS):
        if row.kind in KINDS and not isinstance(row, Skipped):
            found[row.kind][row.source].append(100 * (predict_speed(row) / row.value - 1))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_median_error_over_the_sources_is_within_its_aim(errors, kind) -> None:
    medians = [median(map(abs, of_source)) for of_source in errors[kind].values()]
    assert mean(medians) <= AIMS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_nearly_every_row_is_predicted(errors, kind) -> None:
    rows = [row for row in read_measured(ROWS) if row.kind == kind and not (isinstance(row, Skipped) and row.excluded)]
    assert sum(map(len, errors[kind].values())) >= 0.85 * len(rows)
