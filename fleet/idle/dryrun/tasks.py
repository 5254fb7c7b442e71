from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.idle.dryrun.dry_run import ground_of
from fleet.idle.dryrun.recommend import recommend_all
from fleet.idle.policies.models import IdlePolicy


@shared_task(name="idle.recommend", soft_time_limit=3_300, time_limit=3_400)
def recommend_windows() -> int:
    return recommend_all(now=timezone.now())


@shared_task(name="idle.read_history", soft_time_limit=600, time_limit=660)
def read_history(policy_id: int, days: int) -> None:
    """For a page that waits for it."""
    for policy in IdlePolicy.objects.select_related("team").filter(pk=policy_id, removed_at=None):
        ground_of(policy=policy, days=days, now=timezone.now())
