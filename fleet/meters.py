"""What the processes of an installation have done, added up over all of them, and what each holds at this moment: for /metrics.

Counting is an entry in a dictionary of the process. `flush` adds what has gathered to one hash in Valkey, which every web, worker and beat
process of every host reaches; a process that ends, or a worker's child that is replaced, takes nothing along but its last seconds. Beside
it each process leaves its present figures with the time; those of a process that is gone are no longer read. Valkey emptied is every
counter reset, which Prometheus understands.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import redis
from django.conf import settings

logger = logging.getLogger(__name__)

COUNTS_KEY, PROCESSES_KEY = "rackrent:meters", "rackrent:processes"
FLUSH_SECONDS = 5.0
# Three flushes and some time for a busy machine.
PROCESS_STALE_SECONDS = 20.0
# What a process that is long gone left behind is cleared away by the next one to start.
PROCESS_FORGET_SECONDS = 3_600.0

Labels = tuple[tuple[str, str], ...]
Count = tuple[str, Labels]


class Meters:
    """Those of one process. Labels come from our own words only: every pair is a series for ever."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Count, float] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._away = False

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + by

    def show(self, name: str, read: Callable[[], float]) -> None:
        """`read` is asked at every flush, for as long as the process lives."""
        self._gauges[name] = read

    def flush(self, *, now: float) -> None:
        """Never raises: what Valkey does not take now goes with the next flush."""
        counts = self._take()
        try:
            self._write(counts, now)
            self._away = False
        except redis.RedisError as error:
            self._give_back(counts)
            if not self._away:
                logger.warning("Figures for /metrics wait: Valkey is away (%s)", type(error).__name__)
            self._away = True

    def _take(self) -> dict[Count, float]:
        with self._lock:
            counts, self._counts = self._counts, {}
        return counts

    def _give_back(self, counts: dict[Count, float]) -> None:
        for (name, labels), by in counts.items():
            self.count(name, by, **dict(labels))

    def _write(self, counts: dict[Count, float], now: float) -> None:
        if not counts and not self._gauges:
            return
        with client().pipeline(transaction=False) as pipe:
            for (name, labels), by in counts.items():
                pipe.hincrbyfloat(COUNTS_KEY, json.dumps([name, labels]), by)
            if self._gauges:
                figures = {name: read() for name, read in self._gauges.items()}
                pipe.hset(PROCESSES_KEY, process_name(), json.dumps({"at": now, **figures}))
            pipe.execute()


meters = Meters()


@cache
def client() -> Any:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3, socket_connect_timeout=2, decode_responses=True)


def process_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def read_counts() -> dict[Count, float]:
    """Of all processes, as far as they have flushed. Raises RedisError."""
    found: dict[str, str] = client().hgetall(COUNTS_KEY)
    return {_parsed(field): float(value) for field, value in found.items()}


def read_processes(*, now: float) -> Iterator[dict[str, float]]:
    """The figures of each process that is alive. Raises RedisError."""
    for text in client().hvals(PROCESSES_KEY):
        figures: dict[str, float] = json.loads(text)
        if now - figures.pop("at") <= PROCESS_STALE_SECONDS:
            yield figures


def forget_dead_processes(*, now: float) -> None:
    """Never raises."""
    try:
        entries: dict[str, str] = client().hgetall(PROCESSES_KEY)
        dead = [name for name, text in entries.items() if now - json.loads(text)["at"] > PROCESS_FORGET_SECONDS]
        if dead:
            client().hdel(PROCESSES_KEY, *dead)
    except redis.RedisError as error:
        logger.warning("Figures of ended processes stay: Valkey is away (%s)", type(error).__name__)


def _parsed(field: str) -> Count:
    name, labels = json.loads(field)
    return name, tuple((key, value) for key, value in labels)
