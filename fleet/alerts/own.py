"""What Rackrent can tell of its own trouble. Packages above this one add probes for what only they know (config: beat and worker)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from fleet.alerts.findings import WARNING
from fleet.alerts.snapshot import Trouble
from fleet.telemetry.rollups.models import RollupProgress

logger = logging.getLogger(__name__)

Probe = Callable[[datetime], list[Trouble]]
probes: list[Probe] = []
# Rolled up two minutes after a bucket's end, every minute, for at most 45 s.
ROLLUPS_LATE = timedelta(minutes=15)
# Longer than a restart of the worker takes.
EVALUATION_LATE = timedelta(minutes=3)


def own_troubles(now: datetime) -> list[Trouble]:
    """A probe that fails is a trouble itself."""
    found: list[Trouble] = []
    for probe in probes:
        try:
            found += probe(now)
        except Exception as error:
            logger.exception("A probe of Rackrent itself failed")
            found.append(Trouble("probe", WARNING, values={"error": type(error).__name__}))
    return found


def rollups_late(now: datetime) -> list[Trouble]:
    """Charts, costs and previews stand still. Nothing was ever rolled: nothing is late."""
    until = RollupProgress.objects.filter(resolution="5min").values_list("rolled_until", flat=True).first()
    if until is None or now - until <= ROLLUPS_LATE:
        return []
    return [Trouble("rollups", WARNING, since=until, values={"until": until.isoformat()})]


def evaluation_late(evaluated_at: datetime, now: datetime) -> list[Trouble]:
    """The rules themselves were not looked at for a while: what happened then was noticed late."""
    if now - evaluated_at <= EVALUATION_LATE:
        return []
    return [Trouble("evaluation", WARNING, since=evaluated_at, values={"since": evaluated_at.isoformat()})]


probes.append(rollups_late)
