"""What people say of a stop under way: later, not at all, or now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.idle.shutdown.journal import note
from fleet.idle.shutdown.models import OPEN, IdleStop, IdleStopStage
from fleet.inventory.machines import holds_in_force, place_hold
from fleet.inventory.models import HoldKind
from fleet.teams.audit import Actor, record

LONGEST_SNOOZE = timedelta(hours=24)
# In one quiet time. Who goes on saying "later" means "no", and that has a name and an end: a hold.
MOST_SNOOZES = 10
# A click that came twice, or two people who said the same.
SAME = timedelta(minutes=1)
VETO_LASTS = timedelta(days=7)


@transaction.atomic
def snooze_stop(*, actor: Actor, stop: IdleStop, until: datetime, now: datetime) -> bool:
    """It is kept until then, and warned of again after that if it is still idle. False: it is over, or its provider was told already.

    Raises ValidationError for a moment that is past or more than 24 hours away, and after the tenth in a row.
    """
    if until <= now:
        raise ValidationError({"until": _("Choose a time that is still to come.")})
    if until > now + LONGEST_SNOOZE:
        raise ValidationError(
            {"until": _("Choose a time within the next 24 hours; to keep it for longer, hold the machine.")}
        )
    row = _locked(stop)
    if row is None or _was_ordered(row):
        return False
    if row.snoozed_until is not None and abs(row.snoozed_until - until) < SAME:
        return True
    if row.snoozes >= MOST_SNOOZES:
        raise ValidationError(_("It was put off %(n)d times in a row. Hold the machine instead.") % {"n": MOST_SNOOZES})
    _say(row, stop, snoozed_until=until, snoozes=row.snoozes + 1, next_at=now)
    said = {"until": until.isoformat(), "times": row.snoozes}
    note(row, "snoozed", at=now, actor=actor, values=said)
    record(
        actor=actor, team=row.team, action="idle_stop.snooze", target=row, new={"instance": row.instance.name, **said}
    )
    return True


@transaction.atomic
def veto_stop(*, actor: Actor, stop: IdleStop, reason: str, now: datetime) -> bool:
    """Not to be stopped: a hold in the name of who says so, for a week or until it is released. False: it is over, or its provider was told already.

    A machine that was told to stop and runs on is held all the same, and its stop called off.
    """
    row = _locked(stop)
    if row is None or _was_told(row):
        return False
    if row.vetoed_at is not None and holds_in_force(now=now).filter(instance=row.instance, owner=actor.user).exists():
        return True
    until = now + VETO_LASTS
    place_hold(
        actor=actor, instance=row.instance, until=until, reason=reason[:200], owner=actor.user, kind=HoldKind.PERSON, now=now
    )  # fmt: skip
    _say(row, stop, vetoed_at=now, next_at=now)
    note(row, "vetoed", at=now, actor=actor, detail=reason, values={"until": until.isoformat()})
    told = {"instance": row.instance.name, "reason": reason[:300], "until": until.isoformat()}
    record(actor=actor, team=row.team, action="idle_stop.veto", target=row, new=told)
    return True


@transaction.atomic
def stop_now(*, actor: Actor, stop: IdleStop, now: datetime) -> bool:
    """Without the rest of its grace, and in office hours too; its hook and its last look stay. False: it is over, or past its grace already.

    Raises ValidationError while the warning has reached nobody.
    """
    row = _locked(stop)
    if row is None or row.stage not in {IdleStopStage.WARNED, IdleStopStage.GRACE} or row.hurried_at is not None:
        return False
    if row.stage == IdleStopStage.WARNED:
        raise ValidationError(
            _("Its warning has reached nobody yet. Stop the machine on its own page, if you know that nobody needs it.")
        )
    _say(row, stop, deadline=now, hurried_at=now, next_at=now)
    note(row, "hurried", at=now, actor=actor)
    record(actor=actor, team=row.team, action="idle_stop.hurry", target=row, new={"instance": row.instance.name})
    return True


def _locked(stop: IdleStop) -> IdleStop | None:
    rows = IdleStop.objects.select_for_update(of=("self",)).select_related("team", "instance__team", "operation")
    return rows.filter(OPEN, pk=stop.pk).first()


def _was_ordered(row: IdleStop) -> bool:
    """From its order to its proof only the provider decides. One that failed runs on, and has people's word again."""
    return row.stage in {IdleStopStage.STOPPING, IdleStopStage.VERIFYING} and row.operation_id is not None


def _was_told(row: IdleStop) -> bool:
    """Whether the provider heard of it: until then a hold withholds the call."""
    return _was_ordered(row) and row.operation is not None and row.operation.sent_at is not None


def _say(row: IdleStop, stop: IdleStop, **values: Any) -> None:
    IdleStop.objects.filter(pk=row.pk).update(**values)
    for name, value in values.items():
        setattr(row, name, value)
        setattr(stop, name, value)
