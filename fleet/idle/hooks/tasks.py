"""Runs pre-stop actions over SSH, in the worker that waits for others."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from celery import shared_task
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError

from fleet.guard import Guard
from fleet.idle.hooks.ending import end_run
from fleet.idle.hooks.models import HookRun, HookState
from fleet.idle.hooks.over_ssh import Ran, run_over_ssh
from fleet.idle.hooks.route import route_of

logger = logging.getLogger(__name__)


@shared_task(name="idle.run_hook", soft_time_limit=3_660, time_limit=3_690)
def run_hook(run_id: int) -> None:
    run_once(run_id=run_id, now=timezone.now())


def run_soon(run_id: int) -> None:
    """A broker that is away costs a minute: whoever looks at the run sends it again."""
    try:
        run_hook.apply_async((run_id,))
    except OperationalError:
        logger.warning("Pre-stop action %s waits: the broker is away", run_id)


def run_once(*, run_id: int, now: datetime) -> bool:
    """Takes it up, once. A worker that dies in it leaves it running until its deadline: nobody can tell what the machine has done, so it failed."""
    mine = HookRun.objects.filter(pk=run_id, state=HookState.ASKED, deadline__gt=now)
    if not mine.update(state=HookState.RUNNING, started_at=now):
        return False
    run = HookRun.objects.select_related("instance").get(pk=run_id)
    left = (run.deadline - now).total_seconds()
    _end(run, _ran(run, left))
    return True


def _ran(run: HookRun, seconds: float) -> Ran:
    route = route_of(run.instance)
    if route is None:
        return Ran("no_way")
    return asyncio.run(run_over_ssh(route, guard=Guard.of(settings.ALLOWED_NETWORKS), timeout_seconds=seconds))


def _end(run: HookRun, ran: Ran) -> None:
    if ran.code == "none":
        end_run(run, HookState.NONE, at=timezone.now())
        return
    state = HookState.FAILED if ran.code else HookState.DONE
    end_run(run, state, at=timezone.now(), code=ran.code, exit_code=ran.exit_code, last_line=ran.last_line)
