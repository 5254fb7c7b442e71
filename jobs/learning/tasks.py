"""Background work of learning. Every task calls a use-case."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from jobs.learning.keep import learn


@shared_task(name="jobs.learn")
def learn_from_ended() -> int:
    return learn(now=timezone.now())
