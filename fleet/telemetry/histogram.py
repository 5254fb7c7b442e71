"""Percentiles out of counted percents. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(counts: Sequence[float], share: float) -> int | None:
    """The nearest rank: the lowest percent that at least `share` (0-1) of what was counted lies at or under. None: nothing was counted.

    counts[n]: how many had n percent.
    """
    total = sum(counts)
    if total <= 0:
        return None
    # A share of counts that were weighed is not exact in binary: 0.95 of 20 must be the 19th.
    rank = share * total - 1e-9 * total
    passed = 0.0
    for percent, count in enumerate(counts):
        passed += count
        if count and passed >= rank:
            return percent
    return len(counts) - 1


def mean(counts: Sequence[float]) -> float | None:
    """Of the counted percents; None: nothing was counted."""
    total = math.fsum(counts)
    return math.fsum(percent * count for percent, count in enumerate(counts)) / total if total else None
