from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.attribution.again import settle_reattributions
from fleet.costs.attribution.divide import divide_hours
from fleet.costs.attribution.sampling import sample_use
from fleet.costs.attribution.sync import sync_attribution
from fleet.teams.models import Team


@shared_task(name="costs.attribute")
def attribute() -> None:
    """In steps of one team each: who changes a rule there waits for no other team.

    Looks before it divides, so that the last minute of an hour counts.
    """
    for team in Team.objects.order_by("pk"):
        now = timezone.now()
        sample_use(team=team, now=now)
        sync_attribution(team=team, now=now)
        divide_hours(team=team, now=now)
        settle_reattributions(team=team)
