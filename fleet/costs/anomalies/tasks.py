"""Background work of the rules about unusual money."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import DatabaseError
from django.utils import timezone

from fleet.costs.anomalies.watch import watch_money
from fleet.teams.models import Team

logger = logging.getLogger(__name__)


@shared_task(name="costs.watch_money")
def watch_all_money() -> int:
    """Returns how many alerts were opened. One team that fails does not keep the others waiting."""
    opened = 0
    for team in Team.objects.order_by("pk"):
        try:
            opened += watch_money(team=team, now=timezone.now()).opened
        except DatabaseError:
            logger.exception("The money of team %s could not be watched", team.pk)
    return opened
