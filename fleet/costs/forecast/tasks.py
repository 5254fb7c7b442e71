"""Background work of forecasts."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import DatabaseError
from django.utils import timezone

from fleet.costs.forecast.keep import keep_days
from fleet.teams.models import Team

logger = logging.getLogger(__name__)


@shared_task(name="costs.keep_forecasts")
def keep_forecasts() -> int:
    """Every hour: a day ends at another hour in every time zone. One team that fails does not keep the others waiting."""
    written = 0
    for team in Team.objects.order_by("pk"):
        try:
            written += len(keep_days(team=team, now=timezone.now()))
        except DatabaseError:
            logger.exception("The days of team %s could not be kept", team.pk)
    return written
