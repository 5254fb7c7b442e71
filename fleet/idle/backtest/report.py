"""One policy tried on recorded runs, beside every fixed window. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fleet.idle.backtest.outcomes import Outcome, fixed_outcomes, outcome, outcome_of_all
from fleet.idle.backtest.runs import HOUR_SECONDS, PodRuns

RESAMPLES = 1000
TAIL = 0.05
# Fixed, so that the same file gives the same interval.
SEED = 20


@dataclass(frozen=True, slots=True)
class Report:
    """GPU-hours throughout. `interval`: 90 % of the nets when pods are drawn anew, with replacement."""

    wrong_stop_cost: float
    window_minutes: float | None
    gpu_hours: float
    quiet_gpu_hours: float
    outcome: Outcome
    interval: tuple[float, float]
    fixed: Mapping[int, Outcome]

    @property
    def net(self) -> float:
        return self.outcome.net(self.wrong_stop_cost)

    @property
    def best_fixed_net(self) -> float:
        """In hindsight, on the same runs."""
        return max(one.net(self.wrong_stop_cost) for one in self.fixed.values())

    @property
    def share_of_best(self) -> float | None:
        """None where every fixed window loses: there is nothing to have a share of."""
        return self.net / self.best_fixed_net if self.best_fixed_net > 0 else None


def try_policy(pods: Collection[PodRuns], *, window_minutes: float | None, wrong_stop_cost: float) -> Report:
    return Report(
        wrong_stop_cost=wrong_stop_cost,
        window_minutes=window_minutes,
        gpu_hours=sum(pod.seconds for pod in pods) / HOUR_SECONDS,
        quiet_gpu_hours=sum(pod.quiet_seconds for pod in pods) / HOUR_SECONDS,
        outcome=outcome_of_all(pods, window_minutes=window_minutes),
        interval=net_interval(pods, window_minutes=window_minutes, wrong_stop_cost=wrong_stop_cost),
        fixed=fixed_outcomes(pods),
    )


def net_interval(
    pods: Collection[PodRuns], *, window_minutes: float | None, wrong_stop_cost: float
) -> tuple[float, float]:
    """Pods, not runs, are drawn anew: the runs of one pod resemble each other."""
    return interval_of([outcome(pod, window_minutes=window_minutes).net(wrong_stop_cost) for pod in pods])


def interval_of(nets: Sequence[float]) -> tuple[float, float]:
    """Of their sum."""
    if not nets:
        return 0.0, 0.0
    draw = random.Random(SEED)  # noqa: S311 - not for secrets
    totals = sorted(sum(draw.choices(nets, k=len(nets))) for _ in range(RESAMPLES))
    return totals[int(TAIL * RESAMPLES)], totals[int((1 - TAIL) * RESAMPLES) - 1]
