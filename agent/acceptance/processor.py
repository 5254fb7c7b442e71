"""How many processors there are, and how many of them one gets: the same fixed work on one and on all of them."""

from __future__ import annotations

import hashlib
import os
import threading
import time

from agent.host import files
from agent.host.cgroups import container_cgroup

_SINGLE_SECONDS, _ALL_SECONDS = 1.0, 2.0
# PBKDF2 runs in C without Python's lock, so that threads are enough, and in no instruction that only some processors have
_ROUNDS = 2_000
_MOST_THREADS = 512


def test_processor() -> dict[str, object]:
    """Rates in rounds of the work a second; ``effective_cores`` is how many times one core's rate all together reach."""
    count = len(os.sched_getaffinity(0))
    one = _rate(1, _SINGLE_SECONDS)
    every = _rate(min(count, _MOST_THREADS), _ALL_SECONDS)
    found: dict[str, object] = {
        "count": count,
        "single_rate": round(one),
        "all_rate": round(every),
        "effective_cores": round(every / one, 2),
    }
    limit = container_cgroup("/").cpu_limit_cores()
    if limit is not None and limit < count:
        found["limit_cores"] = round(limit, 2)
    load = (files.read_text_or_none("/proc/loadavg") or "").split()
    return {**found, **({"load_before": float(load[0])} if load else {})}


def _rate(threads: int, seconds: float) -> float:
    done = [0] * threads
    began = time.monotonic()

    def work(place: int) -> None:
        while time.monotonic() - began < seconds:
            hashlib.pbkdf2_hmac("sha512", b"rackrent", b"acceptance", _ROUNDS)
            done[place] += _ROUNDS

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done) / (time.monotonic() - began)
