"""From commits to browsers. Nothing here can hold up ingest: what cannot be pushed is dropped, and pages read it as a series."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import redis.asyncio
from channels.layers import get_channel_layer
from django.conf import settings
from redis.exceptions import RedisError

from fleet.telemetry.ingest.group import Prepared
from fleet.telemetry.live import Message, group_name, heartbeat_message, sample_message
from fleet.telemetry.readings import Rows

logger = logging.getLogger(__name__)

# Commits that wait to be told; the oldest go first when the broker is slow or away.
MAX_WAITING = 64

_encode = msgspec.json.Encoder().encode


class Publisher:
    """Tells the channel layer of every commit, one message per machine that somebody watches."""

    def __init__(self) -> None:
        self._waiting: deque[list[tuple[int, Rows | str]]] = deque(maxlen=MAX_WAITING)
        self._news = asyncio.Event()
        self._redis = redis.asyncio.from_url(settings.REDIS_URL)
        self._away = False

    def committed(self, batches: Sequence[Prepared]) -> None:
        self._add([(batch.agent.instance_id, batch.rows) for batch in batches])

    def heartbeat(self, instance_id: int, nvml_state: str) -> None:
        self._add([(instance_id, nvml_state)])

    def _add(self, news: list[tuple[int, Rows | str]]) -> None:
        self._waiting.append(news)
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            await self.flush()

    async def flush(self) -> None:
        """Tell of what waits."""
        self._news.clear()
        try:
            await self._tell(self._take())
            self._away = False
        except (RedisError, OSError) as error:
            self._note_away(error)
        except Exception:
            # The pages after this one must still be told.
            logger.exception("Live pages could not be told of a commit")

    async def close(self) -> None:
        await self._redis.aclose()

    def _take(self) -> dict[int, list[Rows | str]]:
        news: dict[int, list[Rows | str]] = {}
        for instance_id, said in (item for items in self._waiting for item in items):
            news.setdefault(instance_id, []).append(said)
        self._waiting.clear()
        return news

    async def _tell(self, news: dict[int, list[Rows | str]]) -> None:
        now = time.time()
        layer = get_channel_layer()
        for instance_id in await self._watched(news):
            for message in _messages(instance_id, news[instance_id], now):
                event = {"type": "live.message", "text": _encode(message).decode()}
                await layer.group_send(group_name(instance_id), event)

    async def _watched(self, instance_ids: Iterable[int]) -> list[int]:
        """Most machines are watched by nobody; one question spares making and sending their messages."""
        layer: Any = get_channel_layer()
        channels = {layer._get_group_channel_name(group_name(pk)).encode(): pk for pk in instance_ids}  # noqa: SLF001
        counts = await self._redis.pubsub_numsub(*channels)
        return [channels[name] for name, subscribers in counts if subscribers]

    def _note_away(self, error: Exception) -> None:
        if not self._away:
            logger.warning("Live pages are not told of new samples: the broker is away (%s)", type(error).__name__)
        self._away = True


def _messages(instance_id: int, said: list[Rows | str], now: float) -> list[Message]:
    found = [sample_message(instance_id, [rows for rows in said if isinstance(rows, Rows)], now=now)]
    found += [heartbeat_message(instance_id, nvml=state, now=now) for state in said if isinstance(state, str)]
    return [message for message in found if message is not None]
