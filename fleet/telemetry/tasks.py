from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.telemetry.partitions import drop_old_partitions, ensure_partitions
from fleet.telemetry.retention import prune_records


@shared_task(name="telemetry.keep_partitions")
def keep_partitions() -> None:
    now = timezone.now()
    ensure_partitions(now=now)
    drop_old_partitions(now=now)


@shared_task(name="telemetry.prune_records")
def prune_old_records() -> None:
    prune_records(now=timezone.now())
