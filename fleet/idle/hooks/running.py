"""Runs the machine's own pre-stop action, and says what became of it: by its agent, or over SSH where people have confirmed its host key."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from fleet.idle.hooks.ending import OPEN, end_run
from fleet.idle.hooks.models import HookRun, HookState, HookWay
from fleet.idle.hooks.route import route_of
from fleet.idle.hooks.tasks import run_soon
from fleet.idle.shutdown.course import Hook
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor
from fleet.telemetry.actions.ask import ActionError, ActionOpenError, ask_action, offers_action
from fleet.telemetry.actions.models import AgentAction, AgentActionName, AgentActionState

HOOKS = Actor.system("idle")
# What the agent takes for a time-out.
SHORTEST, LONGEST = timedelta(seconds=5), timedelta(hours=1)
# A task that nobody has taken is sent again.
SENT_AGAIN_AFTER = timedelta(seconds=60)


def begin_hook(*, instance: Instance, timeout: timedelta, now: datetime) -> HookRun | None:
    """Asks for it; call it in the transaction of what waits for it. None: the machine has none, as far as there is a way to know."""
    timeout = min(max(timeout, SHORTEST), LONGEST)
    if (action := _asked_of_agent(instance, timeout, now)) is not None:
        return HookRun.objects.create(
            instance=instance, way=HookWay.AGENT, action=action, asked_at=now, deadline=now + timeout
        )
    if route_of(instance) is None:
        return None
    run = HookRun.objects.create(instance=instance, way=HookWay.SSH, asked_at=now, sent_at=now, deadline=now + timeout)
    transaction.on_commit(partial(run_soon, run.pk))
    return run


def look_at_hook(run: HookRun, *, now: datetime | None = None) -> Hook:
    """What became of it by now; `run` is brought up to date. What has not ended by its deadline has failed."""
    now = now or timezone.now()
    run.refresh_from_db()
    if run.state in OPEN and run.way == HookWay.AGENT:
        _take_word_of_agent(run, now)
    if run.state in OPEN and now >= run.deadline:
        end_run(run, HookState.FAILED, code="no_end", at=now)
    if run.state == HookState.ASKED and run.way == HookWay.SSH:
        _send_again(run, now)
    return Hook.RUNNING if run.state in OPEN else Hook(run.state)


def _asked_of_agent(instance: Instance, timeout: timedelta, now: datetime) -> AgentAction | None:
    """None: its agent is silent, or offers none."""
    if not offers_action(instance, AgentActionName.PRE_STOP, now=now):
        return None
    options = {"timeout_seconds": int(timeout.total_seconds())}
    try:
        return ask_action(
            actor=HOOKS,
            instance=instance,
            name=AgentActionName.PRE_STOP,
            options=options,
            now=now,
            lifetime=timeout,
        )
    except ActionOpenError as error:
        return error.action
    except ActionError:
        return None


def _take_word_of_agent(run: HookRun, now: datetime) -> None:
    action = run.action
    if action is None or action.state == AgentActionState.LOST:
        end_run(run, HookState.FAILED, code="no_answer", at=now)
        return
    result = action.result
    lines = str(result.get("output", "")).strip().splitlines()
    ends = {AgentActionState.DONE: (HookState.DONE, ""), AgentActionState.FAILED: (HookState.FAILED, "said_no")}
    if (end := ends.get(AgentActionState(action.state))) is not None:
        state, code = end
        end_run(
            run,
            state,
            at=action.ended_at or now,
            code=code,
            exit_code=_whole(result.get("exit_code")),
            last_line=lines[-1] if lines else action.detail,
        )
    elif action.state == AgentActionState.RUNNING and run.state == HookState.ASKED:
        HookRun.objects.filter(pk=run.pk, state=HookState.ASKED).update(
            state=HookState.RUNNING, started_at=action.started_at
        )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _send_again(run: HookRun, now: datetime) -> None:
    if run.sent_at is None or now - run.sent_at >= SENT_AGAIN_AFTER:
        HookRun.objects.filter(pk=run.pk).update(sent_at=now)
        transaction.on_commit(partial(run_soon, run.pk))
