"""How owners hear of what is planned for their machines, whoever plans it: nothing is stopped whose owner was not told, and nothing is told twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import WARNING
from fleet.alerts.models import Alert
from fleet.alerts.words import register_words
from fleet.inventory.operations.words import failure_words
from fleet.inventory.plans.actions import cancel_action, note_told
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.inventory.plans.reasons import reason_of
from fleet.teams.audit import Actor

PLANNED = "machine.planned_act"
DELETION = "machine.planned_deletion"
TOLD = (PLANNED, DELETION)
FAILED = "planned.failed"
SUBJECT = "planned_act:"


def subject_of(action: PlannedAction) -> str:
    return f"{SUBJECT}{action.pk}"


def cause_of_act(action: PlannedAction) -> str:
    return DELETION if action.verb == PlannedActionVerb.TERMINATE else PLANNED


def tell(action: PlannedAction, *, now: datetime) -> None:
    """Owners hear of it on their own channels, as of anything about their machines. A start ends nothing: nobody is told."""
    if action.verb == PlannedActionVerb.START:
        return
    said = {"act": action.verb, "due_at": action.due_at.isoformat(), "source": action.source, "reason": action.reason}
    raise_event(
        team=action.team,
        cause=cause_of_act(action),
        subject=subject_of(action),
        severity=WARNING,
        signal="planned_act",
        instance=action.instance,
        values={**action.values, **said},
        now=now,
    )


def untell(action: PlannedAction, *, now: datetime) -> None:
    clear_event(team=action.team, cause=cause_of_act(action), subject=subject_of(action), now=now)


def call_off(*, actor: Actor, actions: Iterable[PlannedAction], why: str, now: datetime) -> int:
    """`why`: a person's reason, or a key of plans.actions.ENDED_WORDS. Returns how many stood."""
    done = [action for action in actions if cancel_action(actor=actor, action=action, reason=why, now=now)]
    for action in done:
        untell(action, now=now)
    return len(done)


def untell_ended(*, now: datetime) -> int:
    """What was called off below, or ended by a worker that died before it said so. Returns how many alerts it closed."""
    under_way = PlannedActionState.TAKEN
    return clear_others(TOLD, (*STANDING, under_way), now=now) + clear_others(
        (FAILED,), (PlannedActionState.FAILED, under_way), now=now
    )


def clear_others(causes: Sequence[str], lasts: Sequence[str], *, now: datetime) -> int:
    """Closes the alerts of these causes whose act is in none of the states."""
    alerts = Alert.objects.filter(cause__in=causes, closed_at=None).select_related("team")
    by_action = {int(alert.subject.removeprefix(SUBJECT)): alert for alert in alerts}
    standing = PlannedAction.objects.filter(pk__in=by_action, state__in=lasts).values_list("pk", flat=True)
    over = [by_action[pk] for pk in by_action.keys() - set(standing)]
    for alert in over:
        clear_event(team=alert.team, cause=alert.cause, subject=alert.subject, now=now)
    return len(over)


def note_deliveries() -> int:
    """Writes down which owners a message about a planned act has reached. Returns how many."""
    untold = PlannedAction.objects.filter(state=PlannedActionState.PLANNED, notified_at=None)
    waiting = untold.exclude(verb=PlannedActionVerb.START).select_related("instance", "team")
    return sum(_note_delivery(action) for action in waiting)


def _note_delivery(action: PlannedAction) -> bool:
    """To whoever has a channel of their own, by that; to others by one of the team's."""
    owner_id = action.instance.owner_id
    own = (
        Channel.objects.filter(team=action.team_id, owner=owner_id, enabled=True)
        if owner_id
        else Channel.objects.none()
    )
    heard_by = Q(channel__owner=owner_id) if own.exists() else Q(channel__owner=None)
    sent = Delivery.objects.filter(
        heard_by, alert__team=action.team_id, alert__cause=cause_of_act(action), alert__subject=subject_of(action),
        state=DeliveryState.SENT, sent_at__isnull=False,
    )  # fmt: skip
    at = sent.order_by("sent_at").values_list("sent_at", flat=True).first()
    return at is not None and note_told(action=action, at=at, notice=action.notice)


def planned_words(values: Mapping[str, Any]) -> str:
    said = {
        "act": PlannedActionVerb(values["act"]).label,
        "at": date_format(timezone.localtime(datetime.fromisoformat(values["due_at"])), "Y-m-d H:i"),
        # Alerts of the first releases were all of budgets, and did not say so.
        "why": reason_of(values.get("source", "budget:"), values, values.get("reason", "")),
    }
    return _("“%(act)s” is planned for %(at)s: %(why)s") % said


def failed_words(values: Mapping[str, Any]) -> str:
    said = {
        "act": PlannedActionVerb(values["act"]).label,
        "error": error_words(values["error"], values["detail"]),
        "times": values["attempts"],
    }
    return _("the planned “%(act)s” was not done (tries: %(times)d; it is tried again): %(error)s") % said


def error_words(kind: str, detail: str) -> str:
    """`detail`: what the provider answered, as it is."""
    words = failure_words(kind) if kind else _("nobody knows why")
    return f"{words}: {detail}" if detail else words


def register() -> None:
    register_words("planned_act", planned_words)
    register_words("planned_failed", failed_words)
    remedy = gettext_lazy(
        "Save what you need off the machine. If it has to go on, put the act off or call it off under Idle, Planned, or place a hold on the machine."
    )
    register_cause(Cause(PLANNED, gettext_lazy("is to be stopped"), remedy, quietable=False))
    register_cause(Cause(DELETION, gettext_lazy("is to be deleted with its data"), remedy, quietable=False))
    register_cause(
        Cause(
            FAILED,
            gettext_lazy("is not as it was planned to be"),
            gettext_lazy(
                "Put right what is named below, or do it in the provider's console: until then the machine costs what it costs. "
                "It is tried again until it is done, or until somebody calls it off under Idle, Planned."
            ),
            quietable=False,
        )
    )
