"""Since when nothing has been idle, for the page on which nothing is."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.inventory.models import GPU
from fleet.pages.kept import kept_or_made
from fleet.states import BUYS_NOTHING
from fleet.teams.models import Team
from fleet.telemetry.state_series import StateSeries, state_series
from fleet.telemetry.store.base import StoreError

SPAN = timedelta(hours=24)
POINTS = 97
KEPT_SECONDS = 60
# Of larger fleets something is idle at any time, and a day of all their GPUs takes too long to read for one sentence.
MOST_GPUS = 512


def quiet_since(team: Team, *, now: datetime) -> datetime | None:
    """When the last GPU stopped buying nothing, to a quarter of an hour, of the last day. None: not in that time, or not known."""
    return kept_or_made(f"quiet:{team.pk}", lambda: _read(team, now), seconds=KEPT_SECONDS)


def _read(team: Team, now: datetime) -> datetime | None:
    gpus = list(
        GPU.objects.filter(instance__team=team, instance__gone_at=None).values_list("pk", flat=True)[: MOST_GPUS + 1]
    )
    if not gpus or len(gpus) > MOST_GPUS:
        return None
    try:
        return last_wasted(state_series(gpu_ids=gpus, since=now - SPAN, until=now, max_points=POINTS))
    except StoreError:
        return None


def last_wasted(series: StateSeries) -> datetime | None:
    """The end of the newest bucket in which some GPU bought nothing."""
    width = timedelta(seconds=series.bucket_seconds)
    ends = (
        start + width
        for number, start in enumerate(series.starts)
        if any(BUYS_NOTHING & (column[number] or {}).keys() for column in series.seconds.values())
    )
    return max(ends, default=None)
