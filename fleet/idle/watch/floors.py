"""What each GPU draws at rest: the lowest power of a week."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from fleet.states import DEFAULTS

WEEK = timedelta(days=7)
# A share of the power limit above which nothing is rest, however long it is held.
MOST_AT_REST = 0.4
# Of a small GPU that draws 11 W, a quarter more is less than it strays by itself at rest.
LEAST_WATTS = 20.0

# A distributed store keeps means only. The lowest of all, and of the hours that memory was in use all through: clocks stay up while a program waits.
_RECKON = """\
INSERT INTO gpu_floor AS kept (gpu_id, watts, held_watts, reckoned_at)
SELECT gpu.id, min(greatest(coalesce(rolled.power_watts_min, rolled.power_watts_avg), %(least)s)),
    min(greatest(rolled.power_watts_min, %(least)s)) FILTER (
        WHERE rolled.memory_used_bytes_min >= %(held)s AND rolled.power_watts_min <= %(share)s * rolled.power_limit_watts_max), %(now)s
FROM fleet_gpu gpu JOIN fleet_instance machine ON machine.id = gpu.instance_id
JOIN gpu_rollup_1h rolled ON rolled.gpu_id = gpu.id AND rolled.bucket_at >= %(since)s AND rolled.bucket_at < %(now)s
WHERE gpu.removed_at IS NULL AND machine.gone_at IS NULL AND coalesce(rolled.power_watts_min, rolled.power_watts_avg) IS NOT NULL
GROUP BY gpu.id ORDER BY gpu.id
ON CONFLICT (gpu_id) DO UPDATE SET watts = excluded.watts, held_watts = excluded.held_watts, reckoned_at = excluded.reckoned_at
"""


def reckon_floors(*, now: datetime) -> int:
    """Of the GPUs that told their power in the week. Others keep what was last known of them. Returns how many."""
    given: dict[str, Any] = {
        "now": now,
        "since": now - WEEK,
        "held": DEFAULTS.held_memory_bytes,
        "share": MOST_AT_REST,
        "least": LEAST_WATTS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECKON, given)
        return int(cursor.rowcount)
