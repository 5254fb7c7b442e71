"""Up to where more load is answered by more work, and from where on by waiting alone. Pure.

Closed stages: the knee is where throughput X over latency T is greatest (Kleinrock's power, 1979: "Power and deterministic rules of thumb"). With N = X·T
under way, X/T = X²/N, which grows while d ln X / d ln N > 1/2. So a step to the next stage was worth it while half of its growth, in logarithms, came out as
throughput. Open stages: as long as times do not grow while it lasts, as they do when more begins than is answered. In both, a stage that breaks a promise or fails requests is past the knee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from jobs.loadtest.figures import StageFigures
from jobs.loadtest.plan import LoadPlan, Loop

WORTH = 0.5
# From one third of an open stage to the next: then more begins than is answered. Times that differ by chance stay below it.
GROWN = 1.25
FAILED_SHARE = 0.01
# The tester itself was late by more than that: what it saw is no longer the server's.
LAG_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Knee:
    """`stage`: the last one before it, None where not even the first was kept. `past`: why the next is beyond: failed, ttft, tpot, flat, behind, tester;
    "" = no stage was: the server can do more than was asked of it.
    """

    stage: int | None
    past: str


def find_knee(plan: LoadPlan, stages: Sequence[StageFigures]) -> Knee:
    for number, stage in enumerate(stages):
        before = stages[number - 1] if number else None
        if why := past_it(plan, before, stage):
            return Knee(number - 1 if number else None, why)
    return Knee(len(stages) - 1 if stages else None, "")


def past_it(plan: LoadPlan, before: StageFigures | None, stage: StageFigures) -> str:
    """Why this stage is beyond the knee; "" = it is not."""
    if stage.failed_share > FAILED_SHARE or not stage.answered:
        return "failed"
    if _broken(stage.ttft.p95, plan.promise_ttft_seconds):
        return "ttft"
    if _broken(stage.tpot.p95, plan.promise_tpot_seconds):
        return "tpot"
    if stage.lag_seconds is not None and stage.lag_seconds > LAG_SECONDS:
        return "tester"
    if plan.loop is Loop.OPEN:
        return "behind" if (stage.grown or 0.0) > GROWN else ""
    return "flat" if before is not None and worth(before, stage) < WORTH else ""


def _broken(measured: float | None, promised: float | None) -> bool:
    return measured is not None and promised is not None and measured > promised


def worth(before: StageFigures, stage: StageFigures) -> float:
    """How much of the growth of load came out as throughput: 1 all of it, 0 none, negative where less was answered than before."""
    if before.requests_per_second <= 0 or stage.requests_per_second <= 0:
        return 0.0
    return log(stage.requests_per_second / before.requests_per_second) / log(stage.level / before.level)
