"""The free constants: each is one that matters, and a fit finds what rows were made with."""

from __future__ import annotations

import pytest

from planner.runs import Layout
from planner.speed.training import training_speed
from tests.bench.planner_knobs import Knob, knobs
from tests.bench.planner_refit import fit, loss
from tests.bench.planner_rows import Measured
from tests.planner.speed_runs import A100, training

KNOBS = knobs()


@pytest.fixture(autouse=True)
def _as_shipped():
    shipped = [knob.read() for knob in KNOBS]
    yield
    for knob, value in zip(KNOBS, shipped, strict=True):
        knob.write(value)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: f"{knob.side}-{knob.name}")
def test_a_knob_turns_a_constant_that_is_in_use(knob: Knob) -> None:
    assert knob.read() > 0
    knob.write(knob.prior)
    assert knob.read() == knob.prior


def made_with(matrices: float) -> list[Measured]:
    knob = _ampere()
    knob.write(matrices)
    runs = [training(sequence_length=length, layout=Layout(data=data)) for length in (1024, 4096) for data in (1, 8)]
    rows = [
        Measured(
            id=str(number),
            kind="train_throughput",
            source="made",
            quantity="train_tokens_per_s_total",
            value=training_speed(run, A100).tokens_per_second,
            out_of_memory=False,
            run=run,
            gpu=A100,
            gpus=run.layout.gpus,
            total_memory=None,
            assumed=frozenset(),
            cells={"engine": run.engine},
        )
        for number, run in enumerate(runs)
    ]
    knob.write(knob.prior)
    return rows


def _ampere() -> Knob:
    return next(knob for knob in KNOBS if knob.side == "training" and knob.name == "Ampere.value")


def test_a_fit_finds_the_constant_that_rows_were_made_with() -> None:
    rows = made_with(0.55)
    assert loss(rows) > 0.2
    fit([_ampere()], rows)
    assert _ampere().read() == pytest.approx(0.55, rel=0.02)
    assert loss(rows) < 0.02
