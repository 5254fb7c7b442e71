"""The window that a team should stop idle machines after, learned from recorded runs. Pure.

Taking the window that was best on a small record takes its luck along. So wrong stops are smoothed over windows first, and a window is
recommended only where it gains more than a reserve; else the advice is not to stop, which is a choice too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fleet.idle.backtest.outcomes import Outcome
from fleet.idle.backtest.smoothing import smooth_counts

# GPU-hours that one wrong stop costs, by what a team feels about it.
PRESETS: Mapping[str, float] = MappingProxyType({"careful": 8.0, "balanced": 2.0, "eager": 0.5})
# A window must gain more than cost² / RESERVE GPU-hours: how far few stops stray grows with what each costs, while what there is to
# gain does not. 2.5 lost nothing at a cost of 8 on 400 random halves of a recorded service, where 4 lost on some (docs/idle.md).
RESERVE = 2.5


def recommend_window(recorded: Mapping[int, Outcome], *, wrong_stop_cost: float) -> int | None:
    """Minutes, or None: better not to stop. `recorded`: what each fixed window would have done, of fixed_outcomes."""
    gains = expected_nets(recorded, wrong_stop_cost=wrong_stop_cost)
    best = max(gains, key=lambda minutes: gains[minutes])
    return best if gains[best] > wrong_stop_cost**2 / RESERVE else None


def expected_nets(recorded: Mapping[int, Outcome], *, wrong_stop_cost: float) -> dict[int, float]:
    """GPU-hours by window: what was recovered, less the smoothed cost of wrong stops."""
    wrong = smooth_counts(tuple(recorded), [one.wrong for one in recorded.values()])
    return {
        minutes: one.recovered - wrong_stop_cost * expected
        for (minutes, one), expected in zip(recorded.items(), wrong, strict=True)
    }
