"""What Rackrent can tell of its own trouble, and how every team hears of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Max, Q

from fleet.alerts.door import raise_event
from fleet.alerts.findings import URGENT, WARNING
from fleet.alerts.outside import operations_late, sending_late
from fleet.alerts.rules.own import finding_of
from fleet.alerts.snapshot import Trouble
from fleet.teams.models import Team
from fleet.telemetry.models import Agent
from fleet.telemetry.rollups.models import RollupProgress

logger = logging.getLogger(__name__)

Probe = Callable[[datetime], list[Trouble]]
probes: list[Probe] = []
# Rolled up two minutes after a bucket's end, every minute, for at most 45 s.
ROLLUPS_LATE = timedelta(minutes=15)
# Two heartbeats; an agent that was told to report seldom is not late.
SPEAKING = timedelta(seconds=45)
INGEST_LATE = timedelta(minutes=3)
INGEST_MACHINES = 3
# Longer than a restart of the worker takes.
EVALUATION_LATE = timedelta(minutes=5)


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
    """Charts, costs and previews stand still. Nothing was ever rolled: nothing is late. Catching up takes minutes, so it counts from now."""
    until = RollupProgress.objects.filter(resolution="5min").values_list("rolled_until", flat=True).first()
    if until is None or now - until <= ROLLUPS_LATE:
        return []
    return [Trouble("rollups", WARNING, values={"until": until.isoformat()})]


def ingest_late(now: datetime) -> list[Trouble]:
    """Hearts beat, and the readings of most machines are not taken in: that is not the machines."""
    speaking = Agent.objects.filter(
        heartbeat_at__gt=now - SPEAKING, revoked_at=None, paused=False, batch_at__isnull=False
    )
    late = Count("pk", filter=Q(batch_at__lt=now - INGEST_LATE, report_seconds__lte=INGEST_LATE.total_seconds() / 2))
    counts = speaking.aggregate(agents=Count("pk"), late=late, last=Max("batch_at"))
    if counts["late"] < max(INGEST_MACHINES, counts["agents"] / 2):
        return []
    return [
        Trouble("ingest", URGENT, since=counts["last"], values={"late": counts["late"], "agents": counts["agents"]})
    ]


def report_trouble(*, troubles: Sequence[Trouble], now: datetime) -> None:
    """Tells every team. For what runs outside an evaluation, which clears it when it finds that it is over."""
    if not troubles:
        return
    for team in Team.objects.order_by("pk"):
        for finding in map(finding_of, troubles):
            raise_event(
                team=team,
                cause=finding.cause,
                subject=finding.subject,
                severity=finding.severity,
                signal=finding.kind,
                detail=finding.detail,
                since=finding.since,
                values=finding.values,
                now=now,
            )


def evaluation_late(evaluated_at: datetime, now: datetime) -> list[Trouble]:
    """The rules themselves were not looked at for a while: what happened then was noticed late."""
    if now - evaluated_at <= EVALUATION_LATE:
        return []
    return [Trouble("evaluation", WARNING, since=evaluated_at, values={"since": evaluated_at.isoformat()})]


probes += [rollups_late, ingest_late, sending_late, operations_late]
