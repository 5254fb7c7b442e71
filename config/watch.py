"""The web process looks after beat and worker, which cannot tell of their own death: it raises Rackrent's own trouble in every team's inbox.

It only raises. Evaluations, which run in the worker and are sent by beat, clear it: they are the evidence that both are back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

import redis
from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections

from config import pulse
from fleet.alerts.own import report_trouble
from fleet.alerts.snapshot import Trouble

logger = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
_PARTS = {"beat": pulse.BEAT, "worker": pulse.WORKER}


def dead_parts(now: float) -> list[Trouble]:
    """What has shown no sign of life for too long. What was never seen since the broker was emptied is only starting."""
    try:
        ages = {part: pulse.age_seconds(key, now) for part, key in _PARTS.items()}
    except redis.RedisError as error:
        return [Trouble("broker", "urgent", values={"error": type(error).__name__})]
    return [
        Trouble(part, "urgent", since=datetime.fromtimestamp(now - age, UTC))
        for part, age in ages.items()
        if age is not None and age > pulse.STALE_SECONDS
    ]


def look(now: float) -> list[Trouble]:
    """Looks once and raises what it finds."""
    troubles = dead_parts(now)
    try:
        report_trouble(troubles=troubles, now=datetime.fromtimestamp(now, UTC))
    except DatabaseError as error:
        # /healthz says that too, and there is no inbox to write to.
        logger.warning("Rackrent's own trouble could not be written down: %s", type(error).__name__)
    return troubles


def look_from_thread() -> None:
    """With a connection that is given back: nothing else ends it in a thread of the pool."""
    close_old_connections()
    try:
        look(time.time())
    finally:
        close_old_connections()


async def watch() -> None:
    """For as long as the web process lives."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        await sync_to_async(look_from_thread, thread_sensitive=False)()
