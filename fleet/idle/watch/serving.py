"""What serving endpoints did over a window. Their sums of five minutes grow as readings come, so that they are never behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from msgspec import Struct

from fleet.idle.verdict.evidence import ServingWindow

# An engine that is not heard any more may have ended; while its machine holds memory on a GPU, it may as well hang in its metrics.
SILENT_ENGINE = timedelta(hours=24)


class Endpoint(Struct, frozen=True, gc=False):
    """Over the window since `since`. `counted_seconds`: of the readings whose counters grew from one before; `requests` None: none of them told."""

    name: str
    since: datetime
    first_seen_at: datetime
    sampled_at: datetime | None
    last_request_at: datetime | None
    in_queue: float
    requests: int | None
    counted_seconds: float

    def over(self, now: datetime) -> ServingWindow:
        """A queue that was seen at any time of the window is one request at least."""
        asked = self.last_request_at is not None and self.last_request_at >= self.since
        return ServingWindow(
            name=self.name,
            ready_at=self.first_seen_at if self.sampled_at else None,
            coverage=min(1.0, self.counted_seconds / (now - self.since).total_seconds()),
            requests=self.requests,
            waiting=max(int(self.in_queue), int(asked)),
        )


_ENDPOINTS = """\
SELECT endpoint.instance_id, coalesce(nullif(endpoint.model, ''), endpoint.engine), asked.since, endpoint.first_seen_at,
    endpoint.sampled_at, endpoint.last_request_at,
    CASE WHEN endpoint.sampled_at >= asked.since
        THEN coalesce(endpoint.requests_running, 0) + coalesce(endpoint.requests_waiting, 0) ELSE 0 END,
    sums.requests, sums.seconds
FROM unnest(%(ids)s::bigint[], %(sinces)s::timestamptz[]) AS asked(instance_id, since)
JOIN serving_latest endpoint ON endpoint.instance_id = asked.instance_id AND endpoint.sampled_at >= %(heard)s
CROSS JOIN LATERAL (
    SELECT sum(requests_finished + coalesce(requests_failed, 0))::bigint AS requests, coalesce(sum(interval_seconds) FILTER (WHERE requests_finished IS NOT NULL), 0) AS seconds
    FROM serving_rollup_5min rolled WHERE rolled.endpoint_id = endpoint.id AND rolled.bucket_at >= asked.since AND rolled.bucket_at <= %(now)s
) sums ORDER BY endpoint.instance_id, endpoint.id
"""


def endpoints_of(
    instance_ids: Sequence[int], sinces: Sequence[datetime], *, now: datetime
) -> dict[int, list[Endpoint]]:
    """By machine, of those heard in the last day. `sinces`: where each machine's window begins, at five full minutes. One query."""
    found: dict[int, list[Endpoint]] = defaultdict(list)
    given: dict[str, Any] = {
        "ids": list(instance_ids),
        "sinces": list(sinces),
        "heard": now - SILENT_ENGINE,
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ENDPOINTS, given)
        for instance_id, *values in cursor:
            found[instance_id].append(Endpoint(*values))
    return found


def serving_now(
    endpoints: Sequence[Endpoint], *, began_at: datetime | None, holds_memory: bool, now: datetime
) -> tuple[ServingWindow, ...]:
    """Those that may still be there: heard in the window, or silent since the machine began while memory of its GPUs is in use."""
    return tuple(
        endpoint.over(now)
        for endpoint in endpoints
        if endpoint.sampled_at
        and (
            endpoint.sampled_at >= endpoint.since
            or (holds_memory and (began_at is None or endpoint.sampled_at >= began_at))
        )
    )
