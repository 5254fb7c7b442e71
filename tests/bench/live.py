"""How soon open pages hear of a sample, and whether they hear of all: `python -m tests.bench.live --json`.

200 machines with 8 GPUs post one sample a second each, and 200 pages are open, one a machine: every post goes through the real web process, its commit, the channel
layer and a websocket. A delay runs from the moment at which the post was due to when the page has it. `lost`: samples that were acknowledged and
that a page never got without being told so. Beside it, in the same run, the same pages ask every five seconds, as they do where websockets are
blocked: they get the newest sample only, so that most are passed over.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from config.web import POOL_SIZE
from tests.bench.ingest import (
    AGENTS,
    PORT,
    ROOT,
    VARIETY,
    Fleet,
    cpu_seconds,
    gpu_reading,
    host_reading,
    make_fleet,
    request,
    servers,
    wait_for,
    web,
)
from tests.bench.load import Load
from tests.bench.pages import NUMBER_FIELD

CLIENTS = 200
SECONDS = 30
# The first seconds are not measured: connections, statements and caches are made.
WARM_SECONDS = 5
# Making the requests of a phase takes some seconds; a page that is late has so long to hear of the last sample.
PREPARE_SECONDS, DRAIN_SECONDS = 20.0, 30.0


@dataclass(frozen=True, slots=True)
class Posts:
    """Request number n is due n / clients seconds after the beginning, and is of the machine `machines[n]`."""

    requests: list[bytes]
    machines: list[int]


def make_posts(fleet: Fleet, begins_at: float, clients: int) -> Posts:
    chance, posts = random.Random(7), Posts([], [])
    readings = [gpu_reading(chance) for _ in range(VARIETY)]
    for number in range(clients * SECONDS):
        agent, at = number % clients, round(begins_at + number / clients, 3)
        gpus = [{"uuid": uuid, **chance.choice(readings)} for _, uuid in fleet.gpus[agent]]
        # By which a page knows it again: a moment may be corrected for a clock that seems to be wrong.
        host = {**host_reading(chance), NUMBER_FIELD: float(number)}
        sample = {"at": at, "host": host, "gpus": gpus}
        told = {"v": 1, "agent_version": "0.1.0", "boot_id": "bench", "seq": number, "sent_at": at, "samples": [sample]}
        data = gzip.compress(json.dumps(told, separators=(",", ":")).encode(), 1)
        token = f"Bearer {fleet.agent_tokens[agent]}"
        posts.requests.append(request("/ingest/v1/samples", data, token, "Content-Encoding: gzip\r\n"))
        posts.machines.append(fleet.instance_ids[agent])
    return posts


@contextmanager
def open_pages(fleet: Fleet, mode: str, clients: int) -> Iterator[subprocess.Popen[str]]:
    machines = json.dumps(fleet.instance_ids[:clients])
    command = [sys.executable, "-m", "tests.bench.pages", str(PORT), fleet.session_key, mode, machines]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        raise RuntimeError("The pages could not be opened.")
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def measure(fleet: Fleet, mode: str, clients: int) -> dict[str, Any]:
    # As `python -m config.web` does it.
    os.environ["DATABASE_POOL_SIZE"] = str(POOL_SIZE)
    with web("config.asgi:application", "config.settings") as server, open_pages(fleet, mode, clients) as pages:
        begins_at = time.time() + PREPARE_SECONDS
        posts = make_posts(fleet, begins_at, clients)
        wait_for(begins_at)
        used = cpu_seconds(server)
        load = Load(PORT, posts.requests, clients, drain_seconds=DRAIN_SECONDS, must_drain=False)
        result = asyncio.run(load.open_loop(clients, SECONDS))
        used = cpu_seconds(server) - used
        time.sleep(DRAIN_SECONDS)
        pages.terminate()
        assert pages.stdout is not None
        told = json.loads(pages.stdout.readline())
        pages.wait(30)
    figures = compare(posts, result.acked, load.began_at, told, clients)
    answers = {f"acknowledged_{name}": value for name, value in percentiles(result.latencies).items()}
    return {
        **figures,
        **answers,
        "refused": sum(result.refused.values()),
        "unanswered": result.unanswered,
        "cpu_share": round(used / SECONDS, 3),
    }


def compare(posts: Posts, acked: list[int], began_at: float, told: dict[str, Any], clients: int) -> dict[str, Any]:
    seen, told_at = dict(told["seen"]), dict(told["told"])
    measured = [number for number in acked if number >= clients * WARM_SECONDS]
    delays = [seen[n] - (began_at + n / clients) for n in measured if n in seen]
    # Told before the sample was due, a page does not know of it.
    lost = sum(told_at.get(posts.machines[n], 0) < began_at + n / clients for n in measured if n not in seen)
    return {
        "acknowledged": len(measured),
        "delivered": len(delays),
        **percentiles(delays),
        "lost": lost,
        "pages_told_of_a_gap": len(told_at),
    }


def percentiles(delays: list[float]) -> dict[str, float | None]:
    """None where nothing can be said."""
    if len(delays) < 2:
        return {"p50_ms": None, "p99_ms": None}
    cuts = statistics.quantiles(delays, n=100)
    return {"p50_ms": round(cuts[49] * 1000, 1), "p99_ms": round(cuts[98] * 1000, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="only the figures, as one line of JSON")
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"at most {AGENTS}")
    arguments = parser.parse_args()
    os.environ["HASHED_STATIC"] = "0"
    load_before = os.getloadavg()[0]
    with servers():
        fleet = make_fleet()
        sockets = measure(fleet, "socket", arguments.clients)
        polling = measure(fleet, "polling", arguments.clients)
    # What polling passes over is no secret: it asks for the newest only.
    polling["passed_over"] = polling.pop("lost")
    figures = {
        "clients": arguments.clients,
        "load": round(load_before, 1),
        **sockets,
        **{f"polling_{name}": value for name, value in polling.items()},
    }
    if not arguments.json:
        for name, value in figures.items():
            sys.stdout.write(f"{name:>22}  {value}\n")
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
