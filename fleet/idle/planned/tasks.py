"""Background work of planned acts."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.alerts.planned_acts import note_deliveries, untell_ended
from fleet.idle.leases.planning import plan_ends
from fleet.idle.planned.carrying import carry_out_due
from fleet.idle.planned.proving import settle_taken
from fleet.idle.schedules.planning import plan_schedules


@shared_task(name="idle.carry_out_planned")
def carry_out_planned() -> int:
    """First what became of earlier ones, and who was told; then what is due, and last what is planned next.

    What is planned before something due was done would take its place.
    """
    now = timezone.now()
    settle_taken(now=now)
    note_deliveries()
    carried = carry_out_due(now=now)
    plan_schedules(now=now)
    untell_ended(now=now)
    return carried


@shared_task(name="idle.plan_ends")
def plan_machine_ends() -> int:
    return plan_ends(now=timezone.now())
