"""The bench of the planner: how it scores, the public formulae it sets beside ours, and our targets on the measured rows."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.catalogue.models import models
from planner.runs import Layout, TrainingRun
from tests.bench import planner as bench
from tests.bench.planner_memory import predict
from tests.bench.planner_public import accelerate, cookbook, deepspeed, megatron
from tests.bench.planner_rows import Measured, Skipped, read_measured
from tests.bench.planner_score import Score, percentile_90

MEASURED = Path(__file__).parents[3] / "shared" / "measured" / "planner_measured.csv"
LLAMA_7B = models()["meta-llama/Llama-2-7b-hf"].shape
PARAMETERS = 6_738_415_616
RUN = TrainingRun(
    shape=LLAMA_7B,
    method="full",
    engine="deepspeed",
    layout=Layout(data=8, zero_stage=3),
    sequence_length=2048,
    micro_batch=1,
)


def measured_file() -> Path:
    if not MEASURED.is_file():
        pytest.skip("the measured rows (../shared/measured/planner_measured.csv) are not here")
    return MEASURED


@cache
def report(path: Path) -> dict[str, Any]:
    rows = list(read_measured(path))
    scores, _ = bench.score_rows(rows)
    return bench.figures(scores, rows)


def test_scores_are_signed_and_by_source() -> None:
    score = Score(eligible=4, covered=3)
    score.errors["A"] += [-10.0, 20.0]
    score.errors["B"] += [2.0]
    figures = score.figures()
    assert (figures["n"], figures["coverage"]) == (3, 0.75)
    assert (figures["median_ape"], figures["p90_ape"], figures["bias"]) == (10.0, 20.0, 4.0)
    assert figures["macro_median_ape"] == pytest.approx((15 + 2) / 2)
    assert figures["under_predicted"] == pytest.approx(1 / 3, abs=1e-3)


def test_a_score_of_nothing_is_unknown_and_not_zero() -> None:
    figures = Score().figures()
    assert figures["n"] == 0
    assert figures["median_ape"] is figures["coverage"] is figures["bias"] is None


@pytest.mark.parametrize(("count", "expected"), [(1, 1.0), (10, 9.0), (11, 10.0), (100, 90.0)])
def test_the_90th_percentile_is_a_row(count: int, expected: float) -> None:
    assert percentile_90([float(number) for number in range(1, count + 1)]) == expected


def test_public_formulae_are_what_their_tools_say() -> None:
    assert accelerate(RUN) == 8 * PARAMETERS
    layer = (PARAMETERS - 2 * 32000 * 4096 - 4096) // 32
    assert deepspeed(RUN) == 4 * layer + 18 * PARAMETERS / 8
    assert megatron(RUN) is not None
    plain = cookbook(RUN)
    assert plain is not None
    assert plain > 34 * 2048 * 4096 * 32


def test_targets_hold_on_the_measured_rows() -> None:
    figures = report(measured_file())
    assert figures["kv_cache"]["tokens_given_pool_exact"] == 1
    assert figures["train_memory"]["macro_median_ape"] <= 8
    assert figures["train_memory"]["p90_ape"] <= 25
    assert figures["infer_memory"]["macro_median_ape"] <= 6
    assert figures["false_fit_rate"] < 0.02
    for kind in bench.MEMORY_KINDS:
        assert figures[kind]["coverage"] >= 0.85, kind


def test_pools_are_within_5_per_cent_and_weights_within_1() -> None:
    """Pools by their mean, weights by their median: one FP8 checkpoint keeps its attention in 16 bits and does not say so."""
    errors: dict[str, list[float]] = {"kv_pool_per_gpu": [], "weights_per_gpu": []}
    for row in read_measured(measured_file()):
        if isinstance(row, Measured) and row.quantity in errors:
            compared = predict(row)
            assert not isinstance(compared, Skipped)
            errors[row.quantity].append(abs(bench.error_per_cent(row, compared)))
    pools, weights = errors["kv_pool_per_gpu"], sorted(errors["weights_per_gpu"])
    assert sum(pools) / len(pools) <= 5
    assert weights[len(weights) // 2] <= 1


def test_no_public_formula_is_nearer_than_ours_on_the_rows_that_it_knows() -> None:
    for name, theirs in report(measured_file())["public"].items():
        assert theirs["ours"]["macro_median_ape"] < theirs["macro_median_ape"] / 5, name


def test_the_last_line_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--measured", str(measured_file()), "--worst", "1"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(last) == {*bench.MEMORY_KINDS, *bench.SPEED_KINDS, "false_fit_rate", "public"}
