"""What people do with planned acts: plan one by hand, put one off, call one off."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.alerts.planned_acts import call_off, tell
from fleet.inventory.adapters import adapter_class
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.permits import loses_data, refuse_account, refuse_untouchable
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.plans.actions import plan_action, postpone_action, standing_of
from fleet.inventory.plans.models import PlannedAction, PlannedActionVerb
from fleet.inventory.plans.reasons import kind_of
from fleet.teams.audit import Actor
from fleet.teams.models import Role

PERSON = "person"
FARTHEST, LONGEST_DELAY = timedelta(days=366), timedelta(days=7)
# To the owner of a machine that somebody else plans for.
NOTICE = timedelta(minutes=30)


def role_for(action: PlannedAction) -> Role:
    """Whose word counts against it: a budget's is an admin's matter."""
    return Role.ADMIN if kind_of(action.source) == "budget" else Role.OPERATOR


@transaction.atomic
def plan_by_hand(
    *,
    actor: Actor,
    instance: Instance,
    verb: PlannedActionVerb,
    due_at: datetime,
    reason: str,
    now: datetime,
    accept_loss: bool = False,
) -> PlannedAction:
    """Whoever owns the machine is told, unless they plan it themselves or nobody does. Raises ValidationError by field."""
    source = f"{PERSON}:{verb.value}"
    if found := mistakes(instance, verb, due_at, reason, source, now=now, accept_loss=accept_loss):
        raise ValidationError(found)
    knows = instance.owner_id is None or (actor.user is not None and instance.owner_id == actor.user.pk)
    action = plan_action(
        actor=actor,
        instance=instance,
        verb=verb,
        due_at=due_at,
        source=source,
        reason=reason,
        values={"accept_loss": accept_loss},
        notice=timedelta(0) if knows or verb == PlannedActionVerb.START else NOTICE,
        told_at=now if knows else None,
        now=now,
    )
    if not knows:
        tell(action, now=now)
    return action


def mistakes(
    instance: Instance,
    verb: PlannedActionVerb,
    due_at: datetime,
    reason: str,
    source: str,
    *,
    now: datetime,
    accept_loss: bool,
) -> dict[str, list[str]]:
    """By field; empty where nothing is wrong."""
    found: dict[str, list[str]] = {}
    if not reason.strip():
        found["reason"] = [_("Give a reason: it is kept and shown.")]
    if not now < due_at <= now + FARTHEST:
        found["due_at"] = [_("Choose a moment to come, at most a year from now.")]
    try:
        refuse_account(instance.account, OperationKind(verb.value))
        refuse_untouchable(instance)
    except Refused as refusal:
        found["instance"] = [str(refusal)]
        return found
    if not accept_loss and loses_data(adapter_class(instance.account.kind).semantics, OperationKind(verb.value)):
        found["accept_loss"] = [_("This destroys data on the machine. Say that it may go, or save an image first.")]
    if standing_of(instance, source, verb).exists():
        found["due_at"] = [_("The same is planned for this machine already: put that off, or call it off first.")]
    return found


def put_off(*, actor: Actor, action: PlannedAction, until: datetime, now: datetime) -> bool:
    """False: it had ended, was taken up, or is due later already. Raises ValidationError."""
    if not now < until <= max(now, action.due_at) + LONGEST_DELAY:
        raise ValidationError({"until": _("Choose a moment to come, at most seven days after it is due.")})
    return postpone_action(actor=actor, action=action, until=until, now=now)


def put_off_by(*, actor: Actor, action: PlannedAction, hours: int, now: datetime) -> bool:
    return put_off(actor=actor, action=action, until=max(now, action.due_at) + timedelta(hours=hours), now=now)


def cancel(*, actor: Actor, action: PlannedAction, reason: str, now: datetime) -> bool:
    return bool(call_off(actor=actor, actions=[action], why=reason, now=now))
