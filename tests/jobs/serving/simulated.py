"""A server over hours, in the time of a test: what it does at each look is reckoned, and handed to the functions that take in a real look.

Requests come at `arrivals(at)` a second and are computed `slots` at a time; who finds none free waits. Everything that the server says of itself
is its page of metrics, in its engine's own form, its log, and its memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from jobs.book.models import Attempt, Job, JobState
from jobs.book.serving import Serving
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.serving.ask import Answer
from jobs.serving.due import add_servers, claim
from jobs.serving.models import Server
from jobs.serving.run import take_in
from tests.fakes.serving_metrics import Metrics
from tests.jobs.conftest import newest

GIB = 1024**3
LOOK = timedelta(seconds=120)
# A request's way through the spread of its kind: half of them at 1, one in twenty as long as the last.
SPREAD = ((0.3, 0.7), (0.4, 1.0), (0.25, 1.4), (0.05, 1.9))
VLLM_LOADS = (
    "INFO Starting to load model org/tiny...",
    "Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]",
    "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:04<00:04,  2.11s/it]",
    "Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:08<00:00,  2.05s/it]",
    "INFO Model loading took 14.9889 GiB and 8.912345 seconds",
)
SERVED = 'INFO:     10.0.3.7:51344 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
HEALTHY = 'INFO:     10.0.3.1:40122 - "GET /health HTTP/1.1" 200 OK'


def steady(per_second: float) -> Callable[[float], float]:
    return lambda _at: per_second


def day_and_night(by_day: float, by_night: float) -> Callable[[float], float]:
    """Two hours by day, then one by night, and again."""
    return lambda at: by_day if at % 10_800 < 7_200 else by_night


def usual_words(look: int, served: int) -> list[str]:
    return [] if look % 6 else [HEALTHY, *[SERVED] * min(9, served)]


@dataclass
class Scene:
    """`memory(at, served)` in bytes; `tail`: of the requests, how many take `tail_times` as long. `said`: lines of its log at each look."""

    expected: set[str]
    engine: str = "vllm"
    hours: float = 2.0
    arrivals: Callable[[float], float] = lambda _at: 2.0
    slots: int = 32
    prefill_seconds: float = 0.2
    token_seconds: float = 0.02
    tokens: int = 200
    tail: float = 0.0
    tail_times: float = 1.0
    cache_of: Callable[[float, float], float] = lambda running, _at: min(1.0, running / 48)
    memory: Callable[[float, float], float] = lambda at, _served: 20 * GIB + 0.1 * GIB * math.sin(at / 300)
    said: Callable[[int, int], list[str]] = usual_words
    timeout_seconds: float | None = None
    short_answers: tuple[float, ...] = (0.4, 0.05, 0.05)
    random: Random = field(default_factory=lambda: Random(7))


@dataclass
class Flow:
    """How many wait, after so many seconds of arrivals."""

    waiting: float = 0.0
    served: float = 0.0
    owed: float = 0.0

    def pass_on(self, scene: Scene, arrivals: float, seconds: float) -> tuple[float, float, int]:
        """Requests that run, seconds that one waits, and how many ended."""
        service = scene.prefill_seconds + scene.token_seconds * scene.tokens
        most = scene.slots / service
        left = self.waiting + (arrivals - most) * seconds
        done = min(most, arrivals + self.waiting / seconds) * seconds
        self.waiting = max(0.0, left)
        running = float(scene.slots) if self.waiting else min(float(scene.slots), arrivals * service)
        self.served += done
        self.owed += done
        ended, self.owed = int(self.owed), self.owed % 1
        return running, self.waiting / most, ended


def play(job: Job, scene: Scene, *, until: datetime) -> Attempt:
    """The attempt as it stands at the end of the scene."""
    begin = until - timedelta(hours=scene.hours)
    attempt, server = _begun(job, begin)
    serving = Serving.of(job.serving)
    assert serving is not None
    metrics, flow, offset = Metrics("org/tiny"), Flow(), 0
    looks = int(timedelta(hours=scene.hours) / LOOK)
    for number in range(looks):
        at = begin + LOOK * (number + 1)
        seconds = (at - begin).total_seconds()
        rate = scene.arrivals(seconds) * scene.random.uniform(0.9, 1.1)
        running, waits, ended = flow.pass_on(scene, rate, LOOK.total_seconds())
        _tell(scene, metrics, running, waits, ended, flow, seconds)
        lines = [*(VLLM_LOADS if number == 0 else ()), *scene.said(number, ended)]
        if lines:
            data = "".join(f"{line}\n" for line in lines).encode()
            store_part(node=server.node, part=Part(offset, data), at=at)
            offset += len(data)
        claimed = claim(server_id=server.pk, now=at)
        assert claimed is not None
        take_in(claimed, serving, _answer(scene, metrics, flow, seconds, claimed), by_agent=False, at=at)
    return attempt


def _begun(job: Job, begin: datetime) -> tuple[Attempt, Server]:
    attempt = newest(job)
    Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING, started_at=begin, created_at=begin)
    Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING, started_at=begin)
    attempt.nodes.update(started_at=begin, launched_at=begin, prepared_at=begin)
    add_servers(now=begin)
    attempt.refresh_from_db()
    return attempt, Server.objects.select_related("node").get(node__attempt=attempt)


def _tell(scene: Scene, metrics: Metrics, running: float, waits: float, ended: int, flow: Flow, seconds: float) -> None:
    metrics.running, metrics.waiting = round(running), round(flow.waiting)
    metrics.cache = scene.cache_of(running, seconds)
    for share, times in SPREAD:
        count = round(ended * share)
        slow = round(count * scene.tail)
        for how_many, factor in ((count - slow, times), (slow, times * scene.tail_times)):
            if how_many:
                metrics.finish(
                    ttft=waits + scene.prefill_seconds * times,
                    tpot=scene.token_seconds * factor,
                    prompt=500,
                    generated=scene.tokens,
                    reason="length",
                    times=how_many,
                )


def _answer(scene: Scene, metrics: Metrics, flow: Flow, seconds: float, server: Server) -> Answer:
    is_new = server.ready_at is None
    return Answer(
        is_up=True,
        seconds=0.004,
        models=("org/tiny",) if is_new else None,
        page=metrics.page(scene.engine),
        memory_bytes=int(scene.memory(seconds, flow.served)),
        short_answers=scene.short_answers if is_new else (),
    )


def burst_each(every: float, lasts: float, high: float, low: float) -> Callable[[float], float]:
    return lambda at: high if at % every < lasts else low


def loads_each(look: int, served: int) -> list[str]:
    """As a server that loads for every request tells of it."""
    load = "Loading checkpoint shards: 100%|##########| 4/4 [00:06<00:00,  1.61s/it]"
    return [line for _request in range(min(served, 4)) for line in (load, SERVED)]


def _leak(base: float, per_hour: float) -> Callable[[float, float], float]:
    return lambda at, _served: base + per_hour * at / 3600 + 0.02 * GIB * math.sin(at / 200)


def _per_request(base: float, each: float) -> Callable[[float, float], float]:
    return lambda _at, served: base + each * served


def _fills(base: float, most: float, each: float) -> Callable[[float, float], float]:
    return lambda _at, served: base + min(most, each * served)


def _follows(base: float, by_day: float) -> Callable[[float, float], float]:
    """Grows with the work of the day, gives back by night."""
    return lambda at, _served: base + by_day * (min(1.0, at % 10_800 / 7_200) if at % 10_800 < 7_200 else 0.05)


def _sawtooth(base: float, height: float) -> Callable[[float, float], float]:
    return lambda at, _served: base + height * (at % 1_500) / 1_500


SCENES: dict[str, Scene] = {
    # Nothing is wrong.
    "steady, vLLM": Scene(set()),
    "steady, TGI": Scene(set(), engine="tgi", arrivals=steady(3.0)),
    "steady, TensorRT-LLM": Scene(set(), engine="trtllm"),
    "follows day and night": Scene(
        set(), hours=3.9, arrivals=day_and_night(5.0, 0.3), memory=_follows(18 * GIB, 3 * GIB)
    ),
    "cache fills up and stays": Scene(set(), memory=_fills(12 * GIB, 6 * GIB, 2 * 1024**2)),
    "cache fills up and stays, TGI": Scene(
        set(), engine="tgi", hours=4, memory=_fills(9 * GIB, 4 * GIB, 1.5 * 1024**2)
    ),
    "garbage that is collected": Scene(set(), memory=_sawtooth(16 * GIB, 1.5 * GIB)),
    "nobody asks": Scene(set(), arrivals=steady(0.0), said=lambda _look, _served: [HEALTHY]),
    "short bursts that drain": Scene(set(), arrivals=burst_each(1_800, 120, 9.0, 1.0)),
    "prefix cache full, nobody waits": Scene(set(), cache_of=lambda _running, _at: 0.99),
    "just begun, few requests": Scene(set(), hours=0.2, arrivals=steady(0.02)),
    "long answers that clients wait for": Scene(
        set(), tokens=2_400, slots=128, arrivals=steady(1.0), timeout_seconds=300
    ),
    "busy up to its edge": Scene(set(), arrivals=steady(6.8)),
    "long prompts, no queue": Scene(set(), prefill_seconds=6.0, tokens=100, arrivals=steady(1.0)),
    # Memory leaks.
    "leak, steady load": Scene({"memory_leak"}, memory=_leak(31 * GIB, 1.1 * GIB)),
    "leak, slow": Scene({"memory_leak"}, hours=4, memory=_leak(6 * GIB, 0.12 * GIB)),
    "leak of each request, TGI": Scene({"memory_leak"}, engine="tgi", memory=_per_request(8 * GIB, 256 * 1024)),
    "leak that night does not give back": Scene(
        {"memory_leak"}, hours=3.0, arrivals=day_and_night(5.0, 0.3), memory=_leak(20 * GIB, 0.9 * GIB)
    ),
    "leak, TensorRT-LLM": Scene({"memory_leak"}, engine="trtllm", memory=_leak(40 * GIB, 0.8 * GIB)),
    # Time-outs.
    "queue, vLLM": Scene({"queueing"}, arrivals=burst_each(3_600, 2_400, 8.2, 4.0)),
    "queue, TGI": Scene({"queueing"}, engine="tgi", arrivals=burst_each(3_600, 2_400, 8.2, 4.0)),
    "queue in the rush hour of a long day": Scene(
        {"queueing"}, hours=4.0, arrivals=lambda at: 8.3 if 6_000 < at < 8_100 else 4.8
    ),
    "queue, TensorRT-LLM": Scene({"queueing"}, engine="trtllm", arrivals=steady(8.0)),
    "computes, vLLM": Scene({"computing"}, tokens=2_400, slots=128, arrivals=steady(1.0)),
    "computes, TGI": Scene({"computing"}, engine="tgi", tokens=2_400, slots=128, arrivals=steady(1.0)),
    "computes, TensorRT-LLM": Scene(
        {"computing"}, engine="trtllm", tokens=1_200, token_seconds=0.06, slots=128, arrivals=steady(1.0)
    ),
    "tail": Scene({"tail_latency"}, tail=0.1, tail_times=14.0),
    "one at a time": Scene({"synchronous"}, slots=1, arrivals=steady(0.3), tokens=180),
    "one at a time, TGI": Scene({"synchronous"}, engine="tgi", slots=1, arrivals=steady(0.3), tokens=180),
    "loads for each request": Scene(
        {"loads_each_request"}, arrivals=steady(0.05), prefill_seconds=7.0, said=loads_each
    ),
    "loads for each request, says nothing": Scene(
        {"loads_each_request"}, arrivals=steady(0.05), prefill_seconds=7.0, short_answers=(8.1, 7.4, 7.2)
    ),
    # The KV cache.
    "KV cache too small": Scene(
        {"kv_cache_small"},
        slots=24,
        arrivals=burst_each(900, 600, 5.8, 3.0),
        cache_of=lambda running, _at: 0.99 if running > 22 else 0.7,
    ),
}
