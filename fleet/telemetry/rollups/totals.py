"""Seconds in each state since a GPU is counted: the one figure of rollups that only ever grows, for readers that make rates of it.

A bucket is counted once, when it is first rolled: a sample that comes later moves seconds from one state to another in the rollups, but
a counter cannot go back.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection, transaction
from psycopg import sql

from fleet.telemetry.rollups.columns import FIVE_MINUTES
from fleet.telemetry.rollups.models import RollupProgress
from fleet.telemetry.rollups.roll import try_lock
from fleet.telemetry.state_codes import SECONDS_COLUMNS

PROGRESS = "states"
# After a time without rollups, an hour at a time: no transaction grows with how long that was.
STEP = timedelta(hours=1)
LOCK = 7_305_412_047

_COLUMNS = [sql.Identifier(column) for column in SECONDS_COLUMNS.values()]
_COUNT = sql.SQL(
    "INSERT INTO gpu_state_total AS total (gpu_id, {columns}) SELECT rolled.gpu_id, {sums} FROM gpu_rollup_5min rolled "
    "JOIN fleet_gpu gpu ON gpu.id = rolled.gpu_id WHERE bucket_at >= %s AND bucket_at < %s GROUP BY rolled.gpu_id "
    "ON CONFLICT (gpu_id) DO UPDATE SET {added}"
).format(
    columns=sql.SQL(", ").join(_COLUMNS),
    sums=sql.SQL(", ").join(sql.SQL("sum({}::float8)").format(column) for column in _COLUMNS),
    added=sql.SQL(", ").join(sql.SQL("{0} = total.{0} + EXCLUDED.{0}").format(column) for column in _COLUMNS),
)


def count_states() -> int:
    """Counts every bucket of five minutes that was rolled since the last time. Returns the steps it took."""
    steps = 0
    while _step():
        steps += 1
    return steps


@transaction.atomic
def _step() -> bool:
    """False: nothing is left, or another worker is at it."""
    if not try_lock(LOCK):
        return False
    rolled_until = _reach(FIVE_MINUTES.name)
    if rolled_until is None:
        return False
    since = _reach(PROGRESS)
    if since is None:
        # What was rolled before the first count is history; a counter may begin anywhere.
        RollupProgress.objects.create(resolution=PROGRESS, rolled_until=rolled_until)
        return False
    until = min(rolled_until, since + STEP)
    if until <= since:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [since, until])
    RollupProgress.objects.filter(resolution=PROGRESS).update(rolled_until=until)
    return True


def _reach(resolution: str) -> datetime | None:
    return RollupProgress.objects.filter(resolution=resolution).values_list("rolled_until", flat=True).first()
