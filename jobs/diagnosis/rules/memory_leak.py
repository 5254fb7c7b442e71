"""A server whose memory grows for ever, told apart from a cache that fills. Pure.

A cache grows with load up to its size and stays there, and what load took is given back when load falls. A leak grows also while load is
steady, and what it has it keeps when load falls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from statistics import linear_regression, median

from jobs.diagnosis.evidence import Evidence, Kind, Series
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure

HOUR = 3600.0
# From an hour of serving on, without its first minutes.
LONGEST_START, LEAST_SECONDS = 900.0, 3600.0
# An hour's growth that matters: of what the process had, and in itself.
GROWS_SHARE, GROWS_BYTES = 0.01, 64 * 1024**2
QUIET_LOAD = 0.3


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
        remedies = ("restart_policy", "bisect_feature", "newer_engine", "cap_host_cache")
        yield Finding(
            "memory_leak",
            Sure.LIKELY if keeps else Sure.POSSIBLE,
            because,
            tuple(Remedy(one) for one in remedies),
            since=series.points[0][0],
        )
        return


def _of_memory(evidence: Evidence) -> Iterator[tuple[str, Series]]:
    assert evidence.serving is not None
    yield "process_grows", evidence.serving.process_memory_bytes
    yield "host_grows", evidence.host.memory_used_bytes
    for gpu in evidence.gpus:
        yield "gpu_grows", gpu.memory_used_bytes


def growth(memory: Series, load: Series) -> tuple[float, bool] | None:
    """Bytes an hour, and whether it stays when load falls; None where it does not grow, or levels off as caches do."""
    if not memory:
        return None
    steady = memory.since(memory.points[0][0] + LONGEST_START)
    if steady.seconds < LEAST_SECONDS or len(steady.points) < 12:
        return None
    quarters = _floors(steady, 4)
    if len(quarters) < 4 or not all(after > before for before, after in itertools.pairwise(quarters)):
        return None
    slope = linear_regression(*zip(*steady.points, strict=True)).slope * HOUR
    if slope < max(GROWS_BYTES, GROWS_SHARE * quarters[0]) or _levels_off(quarters):
        return None
    falls = _after_fall(steady, load)
    return None if falls is False else (slope, bool(falls))


def _floors(series: Series, parts: int) -> list[float]:
    """The lowest of each part: peaks of load are not what stays."""
    begin, width = series.points[0][0], series.seconds / parts
    found = [
        [value for at, value in series.points if begin + part * width <= at <= begin + (part + 1) * width]
        for part in range(parts)
    ]
    return [min(values) for values in found if values]


def _levels_off(floors: list[float]) -> bool:
    """The last step is less than a third of the first."""
    return floors[3] - floors[2] < (floors[1] - floors[0]) / 3


def _after_fall(memory: Series, load: Series) -> bool | None:
    """True: it kept what it had after load fell. False: it gave it back. None: load never fell, so nothing is known."""
    if not load:
        return None
    usual = median(load.values)
    if usual <= 0:
        return None
    quiet = [at for at, value in load.points if value < QUIET_LOAD * usual and at > memory.points[0][0]]
    if len(quiet) < 3:
        return None
    before = [value for at, value in memory.points if at < quiet[0]]
    during = [value for at, value in memory.points if quiet[0] <= at <= quiet[-1]]
    if not before or not during:
        return None
    rise = max(before) - min(before)
    return rise <= 0 or min(during) > max(before) - 0.3 * rise
