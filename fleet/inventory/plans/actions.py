"""Planned actions: written, told, put off and called off. Whoever carries them out takes them up by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.teams.audit import Actor, record

# Called off because nothing is left of it: it may be planned anew when there is.
BY_ITSELF = frozenset({"lifted", "gone", "runs", "late", "replaced"})
ENDED_WORDS = {
    "lifted": _("what it was planned for is over"),
    "gone": _("the machine is off or gone"),
    "runs": _("the machine runs already"),
    "late": _("its time is over: the next stop has come"),
    "replaced": _("something later is planned instead"),
    "superseded": _("another act took its place"),
    "abandoned": _("somebody gave up waiting for its proof"),
}


def ended_words(action: PlannedAction) -> str:
    """Why it was called off, in the reader's language where the reason is ours."""
    return str(ENDED_WORDS.get(action.ended_reason, action.ended_reason))


def standing_of(instance: Instance, source: str, verb: PlannedActionVerb) -> QuerySet[PlannedAction]:
    """What is to be done by that source: planned, or of this kind and under way or failed."""
    unfinished = Q(state__in=(PlannedActionState.TAKEN, PlannedActionState.FAILED), verb=verb)
    rows = PlannedAction.objects.filter(instance=instance, source=source)
    return rows.filter(Q(state=PlannedActionState.PLANNED) | unfinished).order_by("pk")


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
    notice: timedelta = timedelta(0),
    told_at: datetime | None = None,
) -> PlannedAction:
    """The action of `source` that stands for this machine; it is written where there is none.

    `told_at`: its owner knows of it, as when they planned it themselves.
    """
    standing = standing_of(instance, source, verb)
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
        notice_seconds=int(notice.total_seconds()),
        notified_at=told_at,
        planned_by=actor.user,
        created_at=now,
    )
    try:
        with transaction.atomic():
            action.save(force_insert=True)
            new = {"act": verb, "instance": instance.name, "until": due_at.isoformat(), "reason": action.reason}
            record(actor=actor, team=instance.team, action="planned_action.write", target=action, new=new)
    except IntegrityError:
        # Somebody else was quicker: theirs is the one.
        return standing.get(state=PlannedActionState.PLANNED)
    return action


@transaction.atomic
def cancel_action(*, actor: Actor, action: PlannedAction, reason: str, now: datetime) -> bool:
    """Called off, by a person with their reason or because nothing is left of it (a key of ENDED_WORDS). False when it had ended or was taken up."""
    standing = PlannedAction.objects.filter(pk=action.pk, state__in=STANDING)
    done = standing.update(
        state=PlannedActionState.CANCELLED, ended_at=now, ended_by=actor.user, ended_reason=reason[:300]
    )
    if done:
        old = {"act": action.verb, "instance": action.instance.name}
        new = {"reason": reason}
        record(actor=actor, team=action.team, action="planned_action.cancel", target=action, old=old, new=new)
    return bool(done)


@transaction.atomic
def postpone_action(*, actor: Actor, action: PlannedAction, until: datetime, now: datetime) -> bool:
    """Put off until then. False when it had ended, was taken up, or would be due no later."""
    standing = PlannedAction.objects.filter(pk=action.pk, state__in=STANDING, due_at__lt=until)
    found = standing.select_for_update().first()
    if found is None or until <= now:
        return False
    standing.update(
        state=PlannedActionState.PLANNED, due_at=until, next_at=None, waits_for="", failed_at=None,
        error_kind="", error_detail="", hook_run=None,
    )  # fmt: skip
    old = {"act": action.verb, "instance": action.instance.name, "until": found.due_at.isoformat()}
    new = {"until": until.isoformat()}
    record(actor=actor, team=action.team, action="planned_action.postpone", target=action, old=old, new=new)
    return True


def note_told(*, action: PlannedAction, at: datetime, notice: timedelta) -> bool:
    """Its owner was told at that time, and has the whole notice from then on. False when that was noted before."""
    untold = PlannedAction.objects.filter(pk=action.pk, notified_at=None, state=PlannedActionState.PLANNED)
    return bool(untold.update(notified_at=at, due_at=max(action.due_at, at + notice)))
