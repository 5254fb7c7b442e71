"""What stopping after a fixed number of quiet minutes would have done to recorded runs. Pure.

A stop lasts until work returns, or until the run's end is unknown. It is wrong when work returns within half an hour of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleet.idle.backtest.runs import HOUR_SECONDS, Ending, PodRuns

WRONG_WITHIN_SECONDS = 30 * 60.0
WINDOWS_MINUTES = tuple(range(5, 301, 5))


@dataclass(frozen=True, slots=True)
class Outcome:
    """`recovered`: GPU-hours not paid for. `wrong` of the `stops` were followed by work within half an hour, counted by weight where costs differ."""

    recovered: float = 0.0
    stops: int = 0
    wrong: float = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.recovered + other.recovered, self.stops + other.stops, self.wrong + other.wrong)

    def net(self, wrong_stop_cost: float) -> float:
        """GPU-hours; `wrong_stop_cost` is what one wrong stop costs, in GPU-hours."""
        return self.recovered - wrong_stop_cost * self.wrong


NOTHING = Outcome()


def outcome(pod: PodRuns, *, window_minutes: float | None) -> Outcome:
    """None: never stop."""
    if window_minutes is None:
        return NOTHING
    window = window_minutes * 60.0
    stopped = [run for run in pod.runs if run.seconds > window]
    return Outcome(
        recovered=sum(run.seconds - window for run in stopped) / HOUR_SECONDS,
        stops=len(stopped),
        wrong=sum(run.ending is Ending.RETURN and run.seconds - window <= WRONG_WITHIN_SECONDS for run in stopped),
    )


def outcome_of_all(pods: Iterable[PodRuns], *, window_minutes: float | None) -> Outcome:
    return sum((outcome(pod, window_minutes=window_minutes) for pod in pods), NOTHING)


def fixed_outcomes(pods: Iterable[PodRuns]) -> Mapping[int, Outcome]:
    """By each of WINDOWS_MINUTES."""
    watched = tuple(pods)
    return {minutes: outcome_of_all(watched, window_minutes=minutes) for minutes in WINDOWS_MINUTES}
