"""What grows without end is cut back once a day."""

from __future__ import annotations

from axes.handlers.proxy import AxesProxyHandler
from celery import shared_task
from django.utils import timezone

from fleet.teams.idempotency import prune_idempotent_writes
from fleet.teams.sessions import SessionStore

# As long as hourly figures are kept: long enough to ask who was signed in when something happened.
SIGN_INS_KEPT_DAYS = 400


@shared_task(name="teams.prune")
def prune() -> None:
    SessionStore.clear_expired()
    AxesProxyHandler.reset_logs(age_days=SIGN_INS_KEPT_DAYS)
    prune_idempotent_writes(now=timezone.now())
