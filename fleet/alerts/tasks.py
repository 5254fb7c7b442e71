"""Background work of the alerts."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

from celery import shared_task
from django.db import DatabaseError
from django.utils import timezone

from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import AlertProgress
from fleet.alerts.own import own_troubles
from fleet.alerts.retention import prune_alerts
from fleet.teams.models import Team

logger = logging.getLogger(__name__)

# Less than the interval between two runs: a backlog must not hold a worker for long.
EVALUATE_FOR_SECONDS = 8.0
_NEVER = datetime.min.replace(tzinfo=UTC)


@shared_task(name="alerts.evaluate")
def evaluate() -> int:
    """All teams, the longest waiting first. One whose evaluation fails does not keep the others waiting."""
    began, now = time.monotonic(), timezone.now()
    troubles = own_troubles(now)
    events = 0
    for team in _teams_in_order():
        try:
            events += len(evaluate_team(team=team, now=timezone.now(), troubles=troubles))
        except DatabaseError:
            logger.exception("The alert rules of the team %s could not be evaluated", team.slug)
        if time.monotonic() - began > EVALUATE_FOR_SECONDS:
            break
    return events


def _teams_in_order() -> list[Team]:
    last = dict(AlertProgress.objects.values_list("team_id", "evaluated_at"))
    return sorted(Team.objects.order_by("pk"), key=lambda team: last.get(team.pk, _NEVER))


@shared_task(name="alerts.prune")
def prune() -> int:
    return prune_alerts(now=timezone.now())
