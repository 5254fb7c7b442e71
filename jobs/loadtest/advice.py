"""What a server should be told, from what a load test showed: how many at once, how many may wait, how much GPU memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from jobs.loadtest.figures import StageFigures
from jobs.loadtest.knee import Knee
from jobs.loadtest.plan import LoadPlan, Loop

# What each engine calls it, by book.serving.Engine.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "vllm": {"max_concurrency": "--max-num-seqs", "memory_share": "--gpu-memory-utilization"},
    "tgi": {"max_concurrency": "--max-concurrent-requests", "memory_share": "--cuda-memory-fraction"},
    "trtllm": {"max_concurrency": "--max_batch_size", "memory_share": "--kv_cache_free_gpu_memory_fraction"},
}
# vLLM's own default (EngineArgs.gpu_memory_utilization); the others' differ by version and model.
DEFAULT_SHARE = {"vllm": 0.9}
FULL, SPARE = 0.9, 0.5
# Beyond that, what CUDA itself and other libraries take finds no room.
MOST_SHARE = 0.95
# Of the card, left free whatever is suggested.
HEADROOM = 0.03


@dataclass(frozen=True, slots=True)
class Watched:
    """Of the stage at the knee, per replica at its worst; None = the server or the machine does not tell. Shares lie between 0 and 1."""

    kv_cache_share: float | None = None
    preempted: int | None = None
    waiting: float | None = None
    gpu_memory_share: float | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """`code`: max_concurrency, queue_limit, requests_per_second, memory_share; `value` None: leave it, or nobody can say. `because`: a key of words.BECAUSE."""

    code: str
    value: float | None
    because: str
    values: Mapping[str, float] = field(default_factory=dict)
    setting: str = ""


def advise(
    plan: LoadPlan,
    stages: Sequence[StageFigures],
    knee: Knee,
    *,
    watched: Watched,
    engine: str,
    command: str,
    replicas: int,
) -> list[Advice]:
    """For one replica, but `requests_per_second` for all of them. Nothing where not even the first stage was kept."""
    if knee.stage is None:
        return []
    stage = stages[knee.stage]
    return [
        _concurrency(plan, stage, knee, engine, replicas),
        _rate(stage),
        _queue(plan, stage, replicas),
        *_memory(watched, engine, command),
    ]


def _concurrency(plan: LoadPlan, stage: StageFigures, knee: Knee, engine: str, replicas: int) -> Advice:
    """Open stages: as many as were under way in the mean, by Little's law."""
    at_once = stage.level if plan.loop is Loop.CLOSED else stage.at_once
    value = max(ceil(at_once / replicas - 1e-9), 1)
    because = f"knee_{knee.past}" if knee.past else "no_knee"
    said = {"rate": stage.requests_per_second, "tokens": stage.tokens_per_second}
    return Advice("max_concurrency", value, because, said, SETTINGS.get(engine, {}).get("max_concurrency", ""))


def _rate(stage: StageFigures) -> Advice:
    return Advice("requests_per_second", floor(stage.requests_per_second * 10) / 10, "knee_rate")


def _queue(plan: LoadPlan, stage: StageFigures, replicas: int) -> Advice:
    """Who waits for its turn behind `n` others waits n / rate: as many as leave the promise whole. Without one, as many as are served in one answer's time."""
    rate = stage.requests_per_second / replicas
    promised, first = plan.promise_ttft_seconds, stage.ttft.p95
    if promised is not None and first is not None:
        said = {"promise": promised, "ttft": first, "rate": rate}
        return Advice("queue_limit", max(floor(rate * (promised - first)), 0), "queue_promise", said)
    whole = stage.e2e.p50 or 0.0
    return Advice("queue_limit", max(ceil(rate * whole - 1e-9), 1), "queue_round", {"seconds": whole, "rate": rate})


def _memory(watched: Watched, engine: str, command: str) -> Iterator[Advice]:
    kv = watched.kv_cache_share
    setting = SETTINGS.get(engine, {}).get("memory_share", "")
    if kv is None:
        yield Advice("memory_share", None, "kv_unknown", setting=setting)
    elif kv >= FULL or (watched.preempted or 0) > 0:
        yield _more_memory(watched, kv, setting, share_of(command, engine))
    else:
        yield Advice("memory_share", None, "kv_spare" if kv < SPARE else "kv_fits", {"kv": kv}, setting)


def _more_memory(watched: Watched, kv: float, setting: str, share: float | None) -> Advice:
    used = watched.gpu_memory_share
    said = {"kv": kv, "preempted": float(watched.preempted or 0)}
    if share is None or used is None:
        return Advice("memory_share", None, "kv_full", said, setting)
    value = floor(100 * min(share + 1 - used - HEADROOM, MOST_SHARE) + 1e-9) / 100
    if value <= share:
        return Advice("memory_share", None, "kv_full_card", said | {"used": used}, setting)
    return Advice("memory_share", value, "kv_full_room", said | {"used": used, "share": share}, setting)


def share_of(command: str, engine: str) -> float | None:
    """The share of GPU memory that the command gives the engine, or the engine's default."""
    name = SETTINGS.get(engine, {}).get("memory_share")
    if name is None:
        return None
    written = re.escape(name).replace("_", "[-_]").replace(r"\-", "[-_]")
    found = re.findall(rf"{written}[=\s]+([01]?\.\d+|[01])\b", command)
    return float(found[-1]) if found else DEFAULT_SHARE.get(engine)
