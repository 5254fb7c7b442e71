"""Signs of life of the processes without a port: beat notes its own ticks, and the worker notes each run of a task that beat sends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import redis
from celery.beat import PersistentScheduler
from django.core.cache import cache
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

BEAT, WORKER = "pulse:beat", "pulse:worker"
# How often each is noted. A process counts as stopped when three of its notes in a row are missing.
PULSE_SECONDS = 10.0
STALE_SECONDS = 3 * PULSE_SECONDS + 5
_KEEP_SECONDS = 24 * 3600


def note(key: str, at: float) -> None:
    """Write down that the process behind `key` worked at `at` (seconds since the epoch)."""
    cache.set(key, at, timeout=_KEEP_SECONDS)


def age_seconds(key: str, now: float) -> float | None:
    """How long ago the last note was; None when there is none."""
    noted_at: float | None = cache.get(key)
    return None if noted_at is None else max(now - noted_at, 0.0)


class PulsingScheduler(PersistentScheduler):
    """Celery's scheduler that also notes its own ticks, so that a beat that hangs is told from a worker that does."""

    _noted_at = 0.0

    def setup_schedule(self) -> None:
        super().setup_schedule()
        # At once, so that a worker proves itself without waiting for the first interval.
        self._guarded(lambda: self.app.send_task("config.pulse", expires=PULSE_SECONDS))

    def tick(self, *args: Any, **kwargs: Any) -> float:
        delay: float = super().tick(*args, **kwargs)
        self._note_tick(time.time())
        return min(delay, PULSE_SECONDS)

    def _note_tick(self, now: float) -> None:
        if 0 <= now - self._noted_at < PULSE_SECONDS / 2:
            return
        self._noted_at = now
        self._guarded(lambda: note(BEAT, now))

    @staticmethod
    def _guarded(action: Callable[[], object]) -> None:
        try:
            action()
        except (redis.RedisError, OperationalError) as error:
            # Beat goes on: it retries the broker by itself, and the missing note is what tells of the failure.
            logger.warning("Beat could not reach the broker: %s", type(error).__name__)
