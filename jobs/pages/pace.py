"""How fast a run goes, of its newest points. Pure: times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

__all__ = ["Moment", "Pace", "pace_of"]

# A slope of fewer losses is noise.
LEAST_LOSSES = 12


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    step: int
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """`seconds_per_step`: of the wall clock, pauses included. `loss_per_step`: what the loss gains in a step; falling is negative. None = not known."""

    seconds_per_step: float | None = None
    loss_per_step: float | None = None

    def seconds_left(self, step: int, steps: int) -> float | None:
        return None if self.seconds_per_step is None else max(0, steps - step) * self.seconds_per_step


def pace_of(moments: Sequence[Moment]) -> Pace:
    """In order of time. A run that went back to an older step is looked at from there on."""
    recent = _since_last_return(moments)
    if len(recent) < 2 or recent[-1].step == recent[0].step or recent[-1].at <= recent[0].at:
        return Pace()
    seconds = (recent[-1].at - recent[0].at) / (recent[-1].step - recent[0].step)
    return Pace(seconds, _slope(recent))


def _since_last_return(moments: Sequence[Moment]) -> Sequence[Moment]:
    starts = [place for place in range(1, len(moments)) if moments[place].step < moments[place - 1].step]
    return moments[starts[-1] :] if starts else moments


def _slope(moments: Sequence[Moment]) -> float | None:
    """From the mean of the first third to that of the last: single losses jump."""
    known = [(one.step, one.loss) for one in moments if one.loss is not None and isfinite(one.loss)]
    if len(known) < LEAST_LOSSES:
        return None
    third = len(known) // 3
    first, last = known[:third], known[-third:]
    steps = fmean(step for step, _loss in last) - fmean(step for step, _loss in first)
    return (fmean(loss for _step, loss in last) - fmean(loss for _step, loss in first)) / steps if steps > 0 else None
