"""From commits to browsers. Nothing here can hold up ingest: what cannot be pushed is dropped, and the pages that show it are told to read it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from fleet.meters import meters
from fleet.telemetry.ingest.group import Prepared
from fleet.telemetry.live import Message, channel_name, gap_message, heartbeat_message, sample_message
from fleet.telemetry.readings import Rows

logger = logging.getLogger(__name__)

# Readings and heartbeats that wait to be told; machines that wait longest go first when the broker is slow or away.
MAX_WAITING_ROWS = 100_000
AGAIN_SECONDS = 1.0
BROKER_SECONDS = 5.0

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class News:
    """What waits to be told of one machine: since when, and how many rows it is."""

    at: float
    said: list[Rows | str] = field(default_factory=list)
    rows: int = 0


class Publisher:
    """Tells the broker of every commit, one message per machine that somebody watches."""

    def __init__(self) -> None:
        self._waiting: dict[int, News] = {}
        self._waiting_rows = 0
        # Machines of which something was dropped that their pages have not been told of.
        self._missed: set[int] = set()
        self._news = asyncio.Event()
        self._redis = redis.asyncio.from_url(
            settings.REDIS_URL, socket_timeout=BROKER_SECONDS, socket_connect_timeout=BROKER_SECONDS
        )
        self._away = False

    def committed(self, batches: Sequence[Prepared]) -> None:
        for batch in batches:
            self._add(batch.agent.instance_id, batch.rows, len(batch.rows))

    def heartbeat(self, instance_id: int, nvml_state: str) -> None:
        self._add(instance_id, nvml_state, 1)

    def _add(self, instance_id: int, said: Rows | str, rows: int) -> None:
        news = self._waiting.get(instance_id)
        if news is None:
            news = self._waiting[instance_id] = News(time.time())
        news.said.append(said)
        news.rows += rows
        self._waiting_rows += rows
        while self._waiting_rows > MAX_WAITING_ROWS:
            self._drop_oldest()
        self._news.set()

    def _drop_oldest(self) -> None:
        instance_id = next(iter(self._waiting))
        self._waiting_rows -= self._waiting.pop(instance_id).rows
        self._missed.add(instance_id)
        meters.count("live_dropped", reason="queue_full")

    async def run(self) -> None:
        while True:
            await self._news.wait()
            await self.flush()
            if self._missed:
                # Told even if nothing else is ever said of these machines.
                await asyncio.sleep(AGAIN_SECONDS)
                self._news.set()

    async def flush(self) -> None:
        """Tell of what waits."""
        self._news.clear()
        waiting, missed = self._take()
        try:
            await self._tell(waiting, missed)
            self._away = False
        except (RedisError, OSError) as error:
            self._note_away(error)
            self._miss(waiting, missed, "broker")
        except Exception:
            # The pages after this one must still be told.
            logger.exception("Live pages could not be told of a commit")
            self._miss(waiting, missed, "error")

    async def close(self) -> None:
        """Pages of other processes hear of the last commits too."""
        await self.flush()
        await self._redis.aclose()

    def _take(self) -> tuple[dict[int, News], set[int]]:
        taken = self._waiting, self._missed
        self._waiting, self._missed, self._waiting_rows = {}, set(), 0
        return taken

    def _miss(self, waiting: dict[int, News], missed: set[int], reason: str) -> None:
        self._missed |= missed | waiting.keys()
        meters.count("live_dropped", len(waiting), reason=reason)

    async def _tell(self, waiting: dict[int, News], missed: set[int]) -> None:
        """One question and one answer of the broker, whatever the number of machines."""
        watched = await self._watched(waiting.keys() | missed)
        async with self._redis.pipeline(transaction=False) as pipe:
            for instance_id in watched:
                # The gap first: what follows is heard by a page that knows of it.
                if instance_id in missed:
                    pipe.publish(channel_name(instance_id), _encode(gap_message(instance_id, now=time.time())))
                for message in _messages(instance_id, waiting.get(instance_id)):
                    pipe.publish(channel_name(instance_id), _encode(message))
            await pipe.execute()

    async def _watched(self, instance_ids: Iterable[int]) -> list[int]:
        """Most machines are watched by nobody; one question spares making and sending their messages."""
        asked = list(instance_ids)
        counts = await self._redis.pubsub_numsub(*map(channel_name, asked))
        return [pk for pk, (_name, subscribers) in zip(asked, counts, strict=True) if subscribers]

    def _note_away(self, error: Exception) -> None:
        if not self._away:
            logger.warning("Live pages are not told of new samples: the broker is away (%s)", type(error).__name__)
        self._away = True


def _messages(instance_id: int, news: News | None) -> Iterator[Message]:
    if news is None:
        return
    samples = sample_message(instance_id, [rows for rows in news.said if isinstance(rows, Rows)], now=news.at)
    if samples is not None:
        yield samples
    for state in news.said:
        if isinstance(state, str):
            yield heartbeat_message(instance_id, nvml=state, now=news.at)
