"""Samples to a Prometheus-compatible store, acknowledged before an agent is.

What the store does not take now (away, overloaded, a setting is wrong) is refused as a whole: agents keep their batches and send them again, and a value
that is sent twice has the same moment. What it will never take (too old, out of order) must not be asked for again for ever: it is found by halves and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import httpx
import psycopg
from django.conf import settings

from fleet.telemetry.ingest import statements as sql
from fleet.telemetry.ingest.errors import BusyError, RefusalError, UnavailableError
from fleet.telemetry.store.base import Samples
from fleet.telemetry.store.metrics import Point, encoded, points_of
from fleet.telemetry.store.remote_write import HEADERS, encode_request
from fleet.telemetry.store.target import request_headers

logger = logging.getLogger(__name__)

# Values a request: what receivers of remote write are commonly set for.
MAX_VALUES = 10_000
REQUESTS_AT_ONCE = 4
TIMEOUT_SECONDS = 10.0
LONGEST_RETRY_SECONDS = 60
# 400 out of order or too old, 413 more than the receiver takes at once, 422 as some receivers say 400.
_REFUSED = frozenset({400, 413, 422})


class _NotTakenError(Exception):
    """The store refuses this request for good; another one with less in it may be taken."""


class PrometheusWriter:
    def __init__(self, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._client = httpx.AsyncClient(
            headers={**request_headers(), **HEADERS},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            follow_redirects=False,
            transport=transport,
        )
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def send(self, samples: Samples) -> Counter[int]:
        points = points_of(samples.gpus, samples.hosts, samples.machines)
        parts = [self._send_part(part) for part in _parts(points)]
        refused: Counter[int] = Counter()
        errors: list[RefusalError] = []
        # Every part is settled before the first error is told: none is still on its way when its batch is sent again.
        for outcome in await asyncio.gather(*parts, return_exceptions=True):
            if isinstance(outcome, RefusalError):
                errors.append(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                refused += outcome
        if errors:
            raise errors[0]
        return refused

    async def insert(self, connection: psycopg.AsyncConnection[Any], samples: Samples) -> None:
        """Only which buckets are late lies in PostgreSQL."""
        await sql.run(connection, sql.INSERT_LATE_BUCKETS, sql.LATE_BUCKET, samples.late_buckets)

    async def close(self) -> None:
        await self._client.aclose()

    async def _send_part(self, points: Sequence[Point]) -> Counter[int]:
        try:
            async with self._slots:
                await self._post(points)
        except _NotTakenError as error:
            if len(points) > 1:
                return await self._send_halves(points)
            logger.warning("The store refused readings of machine %d: %s", points[0].machine_id, error)
            return Counter({points[0].machine_id: points[0].values})
        return Counter()

    async def _send_halves(self, points: Sequence[Point]) -> Counter[int]:
        """The older half first: sent the other way round, it would be out of order."""
        ordered = sorted(points, key=lambda point: point.moment)
        half = len(ordered) // 2
        return await self._send_part(ordered[:half]) + await self._send_part(ordered[half:])

    async def _post(self, points: Sequence[Point]) -> None:
        body = encode_request(encoded(points))
        try:
            response = await self._client.post(settings.TELEMETRY_WRITE_URL, content=body)
        except httpx.HTTPError as error:
            text = f"The store of readings cannot be reached ({type(error).__name__}). Send the batch again."
            raise UnavailableError(text) from error
        if not response.is_success:
            raise _problem(response)


def _parts(points: Sequence[Point]) -> Iterator[list[Point]]:
    """All points of one GPU or machine are in one part, so that its samples arrive in order."""
    part: list[Point] = []
    values = 0
    for _owner, group in groupby(points, key=lambda point: (point.machine_id, point.gpu_id)):
        owned = list(group)
        more = sum(point.values for point in owned)
        if part and values + more > MAX_VALUES:
            yield part
            part, values = [], 0
        part += owned
        values += more
    if part:
        yield part


def _problem(response: httpx.Response) -> Exception:
    status = response.status_code
    if status in _REFUSED:
        return _NotTakenError(f"{status} {response.text[:200]!r}")
    if status == 429:
        busy = BusyError("The store of readings takes no more just now. Send the batch again later.")
        busy.retry_after = _retry_after(response) or BusyError.retry_after
        return busy
    logger.error("The store of readings answers %d to a write: %r", status, response.text[:200])
    return UnavailableError(f"The store of readings answers {status}. Send the batch again.")


def _retry_after(response: httpx.Response) -> int | None:
    text = response.headers.get("retry-after", "")
    return min(max(int(text), 1), LONGEST_RETRY_SECONDS) if text.isdecimal() and len(text) < 6 else None
