from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.rightsizing.look import look_at_machines
from fleet.teams.models import Team


@shared_task(name="costs.right_size", soft_time_limit=3_300, time_limit=3_400)
def right_size() -> None:
    for team in Team.objects.order_by("pk"):
        look_at_machines(team=team, now=timezone.now())
