"""What a server's own metrics say while it is loaded: how full its KV cache is, how many wait, how many were thrown out of it. No database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from fleet.inventory.remote import RemoteError
from fleet.telemetry.scrape.fetch import MAX_BYTES, FetchError, fetch_text
from fleet.telemetry.scrape.page import NotMetricsError, parse_page
from fleet.telemetry.scrape.readings import UnusableError
from fleet.telemetry.serving.from_page import read_page
from fleet.telemetry.wire import ServingWire
from jobs.loadtest.asking import Question

EVERY_SECONDS, PAGE_SECONDS = 1.0, 5.0
# Of vLLM: no other engine tells it.
PREEMPTED = "vllm:num_preemptions_total"


@dataclass(slots=True)
class Peaks:
    """Of one stage, of the replica where it was highest; None: no server tells. Shares lie between 0 and 1."""

    kv_cache_share: float | None = None
    waiting: float | None = None
    preempted: int | None = None

    def see(self, reading: ServingWire) -> None:
        if reading.kv_cache_ratio is not None:
            self.kv_cache_share = max(self.kv_cache_share or 0.0, reading.kv_cache_ratio)
        if reading.requests_waiting is not None:
            self.waiting = max(self.waiting or 0.0, reading.requests_waiting)


class Watch:
    def __init__(self, clients: Sequence[httpx.AsyncClient], question: Question) -> None:
        self._clients, self._question = clients, question
        self._peaks = Peaks()
        self._counts: dict[int, float] = {}

    def take(self) -> Peaks:
        """What was seen since it was last asked."""
        taken, self._peaks = self._peaks, Peaks()
        return taken

    async def keep_looking(self) -> None:
        """A server without metrics is loaded all the same: then nothing is known of it."""
        while True:
            for place, client in enumerate(self._clients):
                await self._look(place, client)
            await asyncio.sleep(EVERY_SECONDS)

    async def _look(self, place: int, client: httpx.AsyncClient) -> None:
        asked: dict[str, Any] = {"deadline_seconds": PAGE_SECONDS, "most_bytes": MAX_BYTES}
        try:
            text = await fetch_text(client, self._question.metrics_url, self._question.key, **asked)
            readings, _memory = read_page(text, port=1, memory={}, at=0)
            preempted = parse_page(text, {PREEMPTED}).points(PREEMPTED)
        except (FetchError, RemoteError, NotMetricsError, UnusableError):
            return
        for reading in readings:
            self._peaks.see(reading)
        if preempted:
            self._add_preempted(place, sum(value for _labels, value in preempted))

    def _add_preempted(self, place: int, count: float) -> None:
        before = self._counts.get(place, count)
        self._counts[place] = count
        self._peaks.preempted = (self._peaks.preempted or 0) + max(int(count - before), 0)
