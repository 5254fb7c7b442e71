"""A stop that was proved and did not last: its provider showed the machine off, and then running and billed again. It is no stop."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction

from fleet.idle.savings.booking import take_back_saving
from fleet.idle.shutdown.journal import note_stage
from fleet.idle.shutdown.models import IdleStop, IdleStopStage
from fleet.inventory.operations.models import OPEN_STATES


def reopen_returned(*, now: datetime) -> int:
    """Stops whose operation the inventory has opened again because a later reading took its proof back. How many."""
    rows = IdleStop.objects.filter(stage=IdleStopStage.STOPPED, operation__state__in=OPEN_STATES)
    return sum(_reopen(pk, now) for pk in rows.values_list("pk", flat=True))


def _reopen(stop_id: int, now: datetime) -> bool:
    """False: it has been reopened, or another stop of the machine has begun meanwhile."""
    try:
        with transaction.atomic():
            stop = IdleStop.objects.select_for_update(of=("self",)).select_related("team", "instance").get(pk=stop_id)
            if stop.stage != IdleStopStage.STOPPED:
                return False
            stop.stage, stop.since, stop.ended_at, stop.next_at = IdleStopStage.VERIFYING, now, None, now
            stop.save(update_fields=["stage", "since", "ended_at", "next_at"])
            take_back_saving(stop=stop)
            note_stage(stop, at=now)
    except IntegrityError:
        return False
    return True
