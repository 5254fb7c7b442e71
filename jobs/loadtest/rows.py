"""Rows of a load test as the pure parts know them."""

from __future__ import annotations

from jobs.loadtest.figures import Percentiles, StageFigures
from jobs.loadtest.models import LoadStage, LoadTest
from jobs.loadtest.plan import LoadPlan, Loop


def plan_of(test: LoadTest) -> LoadPlan:
    kept = dict(test.plan)
    return LoadPlan(loop=Loop(kept.pop("loop")), levels=tuple(kept.pop("levels")), **kept)


def figures_of_row(row: LoadStage) -> StageFigures:
    times = {name: Percentiles(**row.figures[name]) for name in ("ttft", "tpot", "e2e")}
    return StageFigures(**(row.figures | times))
