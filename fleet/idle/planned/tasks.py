"""Background work of planned acts."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.alerts.planned_acts import note_deliveries, untell_ended
from fleet.idle.planned.carrying import carry_out_due
from fleet.idle.planned.proving import settle_taken


@shared_task(name="idle.carry_out_planned")
def carry_out_planned() -> int:
    """First what became of earlier ones, and who was told; then what is due."""
    now = timezone.now()
    settle_taken(now=now)
    note_deliveries()
    carried = carry_out_due(now=now)
    untell_ended(now=now)
    return carried
