"""Goes on with every stop that is due: what a step left to do, one step, what that leaves to do. Whoever dies anywhere is followed by the next.

No network here: alerts, operations and hooks are rows that their own workers carry outside.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta

from django.db import transaction

from fleet.idle.shutdown.beginning import begin_stops
from fleet.idle.shutdown.carrying import carry_out
from fleet.idle.shutdown.claims import claim, due_ids, locked, release
from fleet.idle.shutdown.course import STOPPABLE, Stage, advance
from fleet.idle.shutdown.facts import facts_of
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.shutdown.reopening import reopen_returned
from fleet.idle.shutdown.terms import course_of, terms_of
from fleet.idle.shutdown.writing import write, write_hook
from fleet.idle.verdict.verdict import Answer

logger = logging.getLogger(__name__)

# So many in one run; the next beat goes on with the rest.
AT_ONCE = 500
SOON = timedelta(seconds=10)
# In grace nothing changes faster than verdicts do.
CALM = timedelta(seconds=45)


def drive(*, now: datetime) -> int:
    """Begins what is to begin and goes one step with each that is due. How many it went on with."""
    reopen_returned(now=now)
    begin_stops(now=now)
    hurry_used(now=now)
    return sum(drive_one(stop_id=pk, now=now) for pk in due_ids(now=now, at_most=AT_ONCE))


def hurry_used(*, now: datetime) -> int:
    """Stops whose machine is not idle any more do not wait for their turn."""
    rows = IdleStop.objects.filter(stage__in=[stage.value for stage in STOPPABLE], next_at__gt=now)
    return rows.exclude(instance__idle_verdict__answer=Answer.IDLE).update(next_at=now)


def drive_one(*, stop_id: int, now: datetime) -> bool:
    """False: it is not due, somebody else has it, or it broke: a stop with a bug must not hold up the others, and comes again when its claim ends."""
    token = claim(stop_id=stop_id, now=now)
    if token is None:
        return False
    try:
        return _go_on(stop_id, token, now)
    except Exception:
        logger.exception("Idle stop %s could not go on", stop_id)
        return False


def _go_on(stop_id: int, token: uuid.UUID, now: datetime) -> bool:
    if not carry_out(stop_id=stop_id, token=token, now=now) or not step(stop_id=stop_id, token=token, now=now):
        return False
    if not carry_out(stop_id=stop_id, token=token, now=now):
        return False
    release(stop_id=stop_id, token=token, next_at=now + _pause(IdleStop.objects.get(pk=stop_id), now))
    return True


@transaction.atomic
def step(*, stop_id: int, token: uuid.UUID, now: datetime) -> bool:
    """Facts, the step that follows from them, and its being written down, under one lock. False: the claim is lost."""
    stop = locked(stop_id, token)
    if stop is None:
        return False
    if stop.ended_at is None:
        facts = facts_of(stop, now=now)
        write_hook(stop, facts, now=now)
        course, acts = advance(course_of(stop), facts, terms_of(stop.terms))
        write(stop, course, acts, now=now)
    return True


def _pause(stop: IdleStop, now: datetime) -> timedelta:
    """To when something can be new: a reminder and the deadline are not missed."""
    if stop.stage != Stage.GRACE or stop.deadline is None:
        return SOON
    moments = [stop.deadline - before for before in terms_of(stop.terms).remind_before] + [stop.deadline]
    waits = [moment - now for moment in moments if moment > now]
    return max(min([CALM, *waits]), timedelta(seconds=1))
