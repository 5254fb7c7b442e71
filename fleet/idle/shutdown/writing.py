"""Writes one step of a course: the row, what is to be done next, an event, the audit row, and what was saved; all in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fleet.idle.savings.booking import book_saving
from fleet.idle.shutdown import telling
from fleet.idle.shutdown.course import Act, Course, Facts
from fleet.idle.shutdown.journal import note, note_stage
from fleet.idle.shutdown.models import IdleStop, IdleStopStage
from fleet.idle.shutdown.terms import columns_of, course_of


def write(stop: IdleStop, course: Course, acts: Sequence[Act], *, now: datetime) -> bool:
    """`stop` is locked. False: nothing is new."""
    # Reading is what the inventory does all the time: an act of every step, which needs no row.
    wanted = [act.value for act in acts if act is not Act.READ]
    if course == course_of(stop) and not wanted:
        return False
    stage_before, deadline_before = stop.stage, stop.deadline
    _save(stop, **columns_of(course), pending=[*stop.pending, *wanted])
    if stop.stage != stage_before:
        note_stage(stop, at=now)
    if stop.stage == IdleStopStage.STOPPED:
        _book(stop, now)
    elif stop.deadline != deadline_before and stop.stage == IdleStopStage.GRACE:
        telling.note_deadline(stop, now=now)
    return True


def write_hook(stop: IdleStop, facts: Facts, *, now: datetime) -> None:
    """What became of the machine's own action, as soon as it is known."""
    run = stop.hook_run
    if run is None or facts.hook.value == stop.hook:
        return
    _save(stop, hook=facts.hook.value, hook_detail=" ".join(filter(None, (run.code, run.last_line)))[:500])
    note(stop, f"hook_{facts.hook.value}", at=now, detail=stop.hook_detail)


def _book(stop: IdleStop, now: datetime) -> None:
    since = stop.operation.proved_at if stop.operation and stop.operation.proved_at else now
    book_saving(instance=stop.instance, stop=stop, since=since, now=now)


def _save(stop: IdleStop, **values: Any) -> None:
    IdleStop.objects.filter(pk=stop.pk).update(**values)
    for name, value in values.items():
        setattr(stop, name, value)
