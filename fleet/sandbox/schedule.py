"""When a simulated agent takes samples. Coarser the longer ago, so that a day of history costs about as much as three hours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import ceil, floor

HISTORY_SECONDS = 24 * 3600.0
# (older than, seconds between samples). No chart of that age has finer buckets.
# Divisors of five minutes, so that the samples of a rollup stand for all of it.
TIERS = ((6 * 3600.0, 100.0), (3600.0, 30.0))
OUTLINE_SECONDS, DENSE_SECONDS = 4 * 3600.0, 60.0
# Below the two minutes after which readings no longer show one unbroken idle time.
OUTLINE_STEP_SECONDS = 90.0


def sample_times(
    *, since: float, until: float, now: float, interval_seconds: float, offset_seconds: float = 0.0
) -> Iterator[float]:
    """Moments in (since, until] on a grid that does not depend on where one starts, so that a batch sent again repeats them."""
    at = since - offset_seconds
    while True:
        step = step_seconds(now - at, interval_seconds)
        at = (floor(at / step + 1e-9) + 1) * step
        if at + offset_seconds > until:
            return
        yield round(at + offset_seconds, 3)


def outline_times(
    *, since: float, until: float, now: float, interval_seconds: float, offset_seconds: float = 0.0
) -> tuple[list[float], list[float]]:
    """(coarse, dense): what tells at once how a machine is and since when, all of it moments that `sample_times` has too."""
    dense_from = max(since, until - DENSE_SECONDS)
    coarse = sample_times(
        since=max(since, until - OUTLINE_SECONDS),
        until=dense_from,
        now=now,
        interval_seconds=ceil(OUTLINE_STEP_SECONDS / interval_seconds) * interval_seconds,
        offset_seconds=offset_seconds,
    )
    dense = sample_times(
        since=dense_from, until=until, now=now, interval_seconds=interval_seconds, offset_seconds=offset_seconds
    )
    return list(coarse), list(dense)


def batch_of_times(times: Iterator[float], size: int) -> list[float]:
    return list(islice(times, size))


def step_seconds(age_seconds: float, interval_seconds: float) -> float:
    """Between two samples of this age."""
    coarse = next((step for older_than, step in TIERS if age_seconds > older_than), interval_seconds)
    return ceil(coarse / interval_seconds) * interval_seconds
