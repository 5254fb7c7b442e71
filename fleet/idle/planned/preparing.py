"""The machine's own pre-stop action before a planned stop: run once a try, waited for, and asked for anew after anything that put the stop off."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.idle.hooks.models import HookRun
from fleet.idle.hooks.running import begin_hook, look_at_hook
from fleet.idle.hooks.words import hook_words
from fleet.idle.planned.steps import fail, keep_waiting
from fleet.idle.policies.covering import judged_by
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.shutdown.course import Hook
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.permits import refuse_account, refuse_untouchable
from fleet.inventory.operations.refusals import Refused
from fleet.inventory.plans.models import PlannedAction, PlannedActionVerb
from fleet.providers.base import InstanceState

DEFAULT_MINUTES = 10


def prepared(action: PlannedAction, *, now: datetime) -> bool:
    """Whether it may be ordered now. A failed action keeps the machine, unless its policy stops without it: nobody knows what was saved."""
    if action.verb == PlannedActionVerb.START or action.instance.state != InstanceState.RUNNING:
        return True
    if action.hook_run is None:
        return _begun(action, now)
    hook = look_at_hook(action.hook_run, now=now)
    if hook is Hook.RUNNING:
        keep_waiting(action, "hook", now=now, hook_run=action.hook_run)
        return False
    policy = _policy_of(action)
    if hook is Hook.FAILED and not (policy and policy.stop_without_hook):
        fail(action, "hook_failed", hook_words(action.hook_run), now=now)
        return False
    return True


def _begun(action: PlannedAction, now: datetime) -> bool:
    """True: the machine has none, or the order would be refused anyway, and then says why."""
    if not _may_be_ordered(action):
        return True
    policy = _policy_of(action)
    minutes = policy.hook_minutes if policy else DEFAULT_MINUTES
    run: HookRun | None = begin_hook(instance=action.instance, timeout=timedelta(minutes=minutes), now=now)
    if run is None:
        return True
    keep_waiting(action, "hook", now=now, hook_run=run)
    return False


def _may_be_ordered(action: PlannedAction) -> bool:
    try:
        refuse_account(action.instance.account, OperationKind(action.verb))
        refuse_untouchable(action.instance)
    except Refused:
        return False
    return True


def _policy_of(action: PlannedAction) -> IdlePolicy | None:
    return judged_by([action.instance])[action.instance_id].policy
