"""Puts the page together. Every part is read for itself: a database that is away costs only what is read from it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from config import health
from config.celery import QUEUES, app
from config.metrics import counters, rows

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 5.0
_PART = "Whether this part of Rackrent works, as /healthz measures it."
_SECTION = "Whether this part of this page could be read; what it holds is missing otherwise."


class _Page:
    """What prometheus_client writes."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def collect() -> bytes:
    sections: dict[str, Awaitable[Sequence[Metric]]] = {
        "parts": _parts(),
        "database": _in_thread(lambda: list(rows.families(timezone.now()))),
        "counters": _in_thread(lambda: list(counters.families(time.time()))),
        "queues": _in_thread(_queues),
    }
    read = await asyncio.gather(*(_guarded(name, section) for name, section in sections.items()))
    good = GaugeMetricFamily("rackrent_metrics_section_up", _SECTION, labels=["section"])
    for name, families in zip(sections, read, strict=True):
        good.add_metric([name], families is not None)
    build = GaugeMetricFamily("rackrent_build_info", "Version of Rackrent.", labels=["version"])
    build.add_metric([settings.VERSION], 1)
    return generate_latest(_Page([build, good, *(family for families in read for family in families or ())]))


def _in_thread(read: Callable[[], Sequence[Metric]]) -> Awaitable[Sequence[Metric]]:
    """In a thread of its own, whose connection to the database is looked after."""
    answer: Awaitable[Sequence[Metric]] = database_sync_to_async(read, thread_sensitive=False)()
    return answer


async def _guarded(name: str, section: Awaitable[Sequence[Metric]]) -> Sequence[Metric] | None:
    try:
        return await asyncio.wait_for(section, TIMEOUT_SECONDS)
    except Exception as error:  # noqa: BLE001  # whatever is away, the rest of the page says so
        logger.warning("/metrics is without its section %s (%s)", name, type(error).__name__)
        return None


async def _parts() -> list[Metric]:
    works = GaugeMetricFamily("rackrent_part_up", _PART, labels=["part"])
    for name, part in (await health.health.parts()).items():
        works.add_metric([name], part.ok)
    return [works]


def _queues() -> list[Metric]:
    waiting = GaugeMetricFamily("rackrent_queue_tasks", "Tasks that wait in the broker.", labels=["queue"])
    with app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=0, timeout=3, reraise_as_library_errors=False)
        channel: Any = connection.default_channel
        for queue in (app.conf.task_default_queue, *QUEUES):
            # To declare the queue passively fails while it is empty: Redis has no key for it then.
            waiting.add_metric([queue], channel.client.llen(queue))
    return [waiting]
