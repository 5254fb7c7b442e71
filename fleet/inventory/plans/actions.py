"""Planned actions: written, told and called off. Whoever carries them out takes them up from `planned` by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.inventory.plans.models import PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.teams.audit import Actor, record

ENDED_WORDS = {
    "lifted": _("what it was planned for is over"),
    "gone": _("the machine is off or gone"),
}


def ended_words(action: PlannedAction) -> str:
    """Why it was called off, in the reader's language where the reason is ours."""
    return str(ENDED_WORDS.get(action.ended_reason, action.ended_reason))


def plan_action(
    *,
    actor: Actor,
    instance: Instance,
    verb: PlannedActionVerb,
    due_at: datetime,
    source: str,
    reason: str,
    now: datetime,
    values: Mapping[str, Any] | None = None,
) -> PlannedAction:
    """The action of `source` that stands for this machine; it is written where there is none."""
    standing = PlannedAction.objects.filter(instance=instance, source=source, state=PlannedActionState.PLANNED)
    if (found := standing.first()) is not None:
        return found
    action = PlannedAction(
        team_id=instance.team_id,
        instance=instance,
        verb=verb,
        due_at=due_at,
        source=source,
        reason=reason[:300],
        values=dict(values or {}),
        created_at=now,
    )
    try:
        with transaction.atomic():
            action.save(force_insert=True)
            record(
                actor=actor,
                team=instance.team,
                action="planned_action.write",
                target=action,
                new={"act": verb, "instance": instance.name, "until": due_at.isoformat(), "reason": action.reason},
            )
    except IntegrityError:
        return standing.get()
    return action


@transaction.atomic
def cancel_action(*, actor: Actor, action: PlannedAction, reason: str, now: datetime) -> bool:
    """Called off, by a person with their reason or because nothing is left of it (a key of ENDED_WORDS). False when it had ended or was taken up."""
    planned = PlannedAction.objects.filter(pk=action.pk, state=PlannedActionState.PLANNED)
    done = planned.update(
        state=PlannedActionState.CANCELLED, ended_at=now, ended_by=actor.user, ended_reason=reason[:300]
    )
    if done:
        old = {"act": action.verb, "instance": action.instance.name}
        record(
            actor=actor,
            team=action.team,
            action="planned_action.cancel",
            target=action,
            old=old,
            new={"reason": reason},
        )
    return bool(done)


def note_told(*, action: PlannedAction, at: datetime, notice: timedelta) -> bool:
    """Its owner was told at that time, and has the whole notice from then on. False when that was noted before."""
    untold = PlannedAction.objects.filter(pk=action.pk, notified_at=None, state=PlannedActionState.PLANNED)
    return bool(untold.update(notified_at=at, due_at=max(action.due_at, at + notice)))
