from __future__ import annotations

import time

from celery import shared_task
from django.conf import settings

from config import deadman, pulse


@shared_task(name="config.pulse")
def note_worker_pulse() -> None:
    pulse.note(pulse.WORKER, time.time())


@shared_task(name="config.ping_deadman")
def ping_deadman() -> None:
    if settings.DEADMAN_URL:
        deadman.ping_if_healthy(web_url=settings.WEB_URL, deadman_url=settings.DEADMAN_URL)
