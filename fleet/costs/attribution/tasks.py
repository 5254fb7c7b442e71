from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.attribution.sync import sync_attribution
from fleet.teams.models import Team


@shared_task(name="costs.attribute")
def attribute() -> None:
    """In steps of one team each: who changes a rule there waits for no other team."""
    for team in Team.objects.order_by("pk"):
        sync_attribution(team=team, now=timezone.now())
