from __future__ import annotations

from celery import current_app, shared_task
from django.utils import timezone

from fleet.idle.watch.floors import reckon_floors
from fleet.idle.watch.judging import judge_all

# The next task of the chain, by its name: what is found here is acted on there.
DRIVE = "idle.drive"


@shared_task(name="idle.judge", soft_time_limit=55, time_limit=58)
def judge_machines_now() -> int:
    """What is idle now is acted on at once, not when the beat comes round to it."""
    judged = judge_all(now=timezone.now())
    if DRIVE in current_app.tasks:
        current_app.send_task(DRIVE)
    return judged


@shared_task(name="idle.reckon_floors", soft_time_limit=900, time_limit=960)
def reckon_floors_now() -> int:
    return reckon_floors(now=timezone.now())
