"""Background work of stops."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.idle.savings.booking import grow_savings
from fleet.idle.shutdown.driver import drive as drive_stops


@shared_task(name="idle.drive")
def drive() -> int:
    return drive_stops(now=timezone.now())


@shared_task(name="idle.grow_savings")
def grow() -> int:
    return grow_savings(now=timezone.now())
