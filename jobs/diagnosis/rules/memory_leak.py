"""A server whose memory grows for ever, told apart from a cache that fills. Pure.

A cache grows with load up to its size and stays there, and what load took is given back when load falls. A leak grows also while load is
steady, and what it has it keeps when load falls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from statistics import linear_regression, median

from jobs.diagnosis.evidence import Evidence, Kind, Series
from jobs.diagnosis.finding import Finding, Reason, Sure, remedies

HOUR = 3600.0
# From an hour of serving on, without its first minutes.
LONGEST_START, LEAST_SECONDS = 900.0, 3600.0
# An hour's growth that matters: of what the process had, and in itself.
GROWS_SHARE, GROWS_BYTES = 0.01, 64 * 1024**2
QUIET_LOAD, QUIET_SECONDS = 0.3, 600.0
# Of what it grew: a server that gives back more than that does not leak.
GIVEN_BACK = 0.3
# Parts of the time whose lowest readings have to climb, each by so much of its even share.
PARTS, LEAST_STEP = 8, 0.1


def look(evidence: Evidence) -> Iterator[Finding]:
    serving = evidence.serving
    if evidence.kind is not Kind.SERVING or serving is None:
        return
    for code, series in _of_memory(evidence):
        found = growth(series, serving.running)
        if found is None:
            continue
        per_hour, keeps = found
        because = (Reason(code, {"bytes_per_hour": round(per_hour)}), *((Reason("keeps_when_quiet"),) if keeps else ()))
        what = remedies("restart_policy", "bisect_feature", "newer_engine", "cap_host_cache")
        sure = Sure.LIKELY if keeps else Sure.POSSIBLE
        yield Finding("memory_leak", sure, because, what, since=series.points[0][0])
        return


def _of_memory(evidence: Evidence) -> Iterator[tuple[str, Series]]:
    assert evidence.serving is not None
    yield "process_grows", evidence.serving.process_memory_bytes
    yield "host_grows", evidence.host.memory_used_bytes
    for gpu in evidence.gpus:
        yield "gpu_grows", gpu.memory_used_bytes


def growth(memory: Series, load: Series) -> tuple[float, bool] | None:
    """Bytes an hour, and whether it stays when load falls; None where it does not grow, or levels off as caches do.

    It grows while there is load: what comes after load fell for good says only whether it is given back.
    """
    if not memory:
        return None
    steady = memory.since(memory.points[0][0] + LONGEST_START)
    quiet = _quiet_since(steady, load)
    busy = steady if quiet is None else steady.until(quiet)
    if busy.seconds < LEAST_SECONDS or len(busy.points) < 3 * PARTS:
        return None
    floors = _floors(busy, PARTS)
    if len(floors) < PARTS or not _climbs(floors):
        return None
    slope = linear_regression(*zip(*busy.points, strict=True)).slope * HOUR
    if slope < max(GROWS_BYTES, GROWS_SHARE * floors[0]) or _levels_off(floors):
        return None
    if quiet is None:
        return slope, False
    rise = max(busy.values) - min(busy.values)
    keeps = min(steady.since(quiet).values) > max(busy.values) - GIVEN_BACK * rise
    return (slope, True) if keeps else None


def _quiet_since(memory: Series, load: Series) -> float | None:
    """When load fell for good, with readings of memory on both sides; None where it did not, or nobody knows."""
    if not load or not memory:
        return None
    usual = max(median(load.values), max(load.values) / 2)
    last_busy = max((at for at, value in load.points if value >= QUIET_LOAD * usual), default=None)
    if last_busy is None or usual <= 0 or load.points[-1][0] - last_busy < QUIET_SECONDS:
        return None
    return last_busy if memory.points[0][0] < last_busy < memory.points[-1][0] - QUIET_SECONDS else None


def _floors(series: Series, parts: int) -> list[float]:
    """The lowest of each part: peaks of load are not what stays."""
    begin, width = series.points[0][0], series.seconds / parts
    found = [
        [value for at, value in series.points if begin + part * width <= at <= begin + (part + 1) * width]
        for part in range(parts)
    ]
    return [min(values) for values in found if values]


def _climbs(floors: list[float]) -> bool:
    """Every part ends higher than the one before. What allocators take in leaps, and give back now and then, does not."""
    least = LEAST_STEP * (floors[-1] - floors[0]) / (len(floors) - 1)
    return floors[-1] > floors[0] and all(after - before >= least for before, after in itertools.pairwise(floors))


def _levels_off(floors: list[float]) -> bool:
    """The last quarter brings less than a third of the first."""
    quarter = len(floors) // 4
    return floors[-1] - floors[-1 - quarter] < (floors[quarter] - floors[0]) / 3
