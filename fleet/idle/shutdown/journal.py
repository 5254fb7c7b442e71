"""What is kept of a stop beside its row: an event for each step, and an audit row for what people must find again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fleet.idle.shutdown.models import IdleStop, IdleStopEvent, IdleStopStage
from fleet.teams.audit import Actor, record

IDLE = Actor.system("idle")
# The stages that people look for in the audit log.
AUDITED = {
    IdleStopStage.WARNED: "idle_stop.warn",
    IdleStopStage.CANCELLED: "idle_stop.call_off",
    IdleStopStage.STOPPING: "idle_stop.order",
    IdleStopStage.STOPPED: "idle_stop.proved",
    IdleStopStage.FAILED: "idle_stop.failed",
}


def note(
    stop: IdleStop,
    kind: str,
    *,
    at: datetime,
    actor: Actor = IDLE,
    detail: str = "",
    values: Mapping[str, Any] | None = None,
) -> IdleStopEvent:
    """One event. Call it in the transaction of what it is about."""
    return IdleStopEvent.objects.create(
        stop=stop,
        at=at,
        kind=kind,
        by=actor.user,
        by_label="" if actor is IDLE else actor.label[:200],
        detail=detail[:500],
        values=dict(values or {}),
    )


def note_stage(stop: IdleStop, *, at: datetime, actor: Actor = IDLE) -> None:
    """The stage that it has just entered."""
    stage = IdleStopStage(stop.stage)
    values = {"deadline": stop.deadline.isoformat()} if stop.deadline and stage == IdleStopStage.GRACE else {}
    note(stop, stage.value, at=at, actor=actor, detail=stop.why, values=values)
    if (action := AUDITED.get(stage)) is not None:
        told = {"instance": stop.instance.name, "act": stop.verb, "policy": stop.policy_name}
        if stop.why:
            told["reason"] = stop.why
        record(actor=actor, team=stop.team, action=action, target=stop, new=told)
