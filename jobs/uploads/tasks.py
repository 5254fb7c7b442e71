"""Background work of uploads."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from jobs.uploads.keep import prune_uploads


@shared_task(name="jobs.prune_uploads")
def prune_job_uploads() -> int:
    return prune_uploads(now=timezone.now())
