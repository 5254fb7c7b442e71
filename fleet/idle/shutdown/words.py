"""What stops are called, what alerts say of them, and why they were called off; all in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.words import register_closed, register_words
from fleet.formats import money_text
from fleet.idle.shutdown import alone, telling
from fleet.idle.shutdown.models import IdleStop, IdleStopStage
from fleet.idle.watch.words import reason_text
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.words import failure_words
from fleet.inventory.words import BILLINGS, STATES
from fleet.providers.base import Billing, InstanceState

Values = Mapping[str, Any]
Words = Mapping[str, str | Promise]
# So many readings stand in a message; the page has all of them.
READINGS = 3
# Why it went back to watching (IdleStop.why).
WHY: Words = {
    "active": gettext_lazy("it is in use"),
    "unknown": gettext_lazy("it is not known any more whether it is idle"),
    "held": gettext_lazy("somebody holds it"),
    "snoozed": gettext_lazy("somebody put it off"),
    "undelivered": gettext_lazy("the warning reached nobody"),
    "hook_failed": gettext_lazy("its pre-stop action failed, so that nobody knows what is saved"),
    "policy": gettext_lazy("its policy was changed or does not cover it any more"),
    "pinned": gettext_lazy("it is pinned now"),
    "office": gettext_lazy("office hours have begun"),
    "off": gettext_lazy("it is off already"),
    "under_way": gettext_lazy("somebody else acts on it"),
    "in_use": gettext_lazy("it was in use again before its provider was told"),
    "use_unknown": gettext_lazy("it is not known any more whether it is idle"),
    "loses_data": gettext_lazy("a stop would destroy data, and its policy does not allow that"),
    "stop_bills": gettext_lazy("its provider bills stopped machines in full"),
    "unmanaged": gettext_lazy("nobody registered it any more"),
    "gone": gettext_lazy("it is gone"),
    "disconnected": gettext_lazy("its account is disconnected"),
    "monitor_only": gettext_lazy("its account may only be looked at"),
    "paused": gettext_lazy("its account is not read at present"),
    "unsupported": gettext_lazy("its provider cannot do this"),
}
EVENTS: Words = {
    "snoozed": pgettext_lazy("idle stop", "put off"),
    "vetoed": pgettext_lazy("idle stop", "somebody said no"),
    "hurried": pgettext_lazy("idle stop", "somebody said now"),
    "reminded": pgettext_lazy("idle stop", "reminded"),
    "put_off": pgettext_lazy("idle stop", "put off for office hours"),
    "hook_begun": pgettext_lazy("idle stop", "pre-stop action asked for"),
    "hook_none": pgettext_lazy("idle stop", "it has no pre-stop action"),
    "hook_done": pgettext_lazy("idle stop", "pre-stop action done"),
    "hook_failed": pgettext_lazy("idle stop", "pre-stop action failed"),
    "told": pgettext_lazy("idle stop", "failure told"),
    "ordered": pgettext_lazy("idle stop", "provider is asked"),
    "refused": pgettext_lazy("idle stop", "refused"),
}
CLOSED: Words = {
    telling.CALLED_OFF: gettext_lazy("its stop was called off"),
    telling.PROVED: gettext_lazy("it is stopped, and its provider shows it"),
    telling.GIVEN_UP: gettext_lazy("it did not stop"),
}


def why_words(code: str) -> str:
    return str(WHY.get(code, code))


def event_words(kind: str) -> str:
    if kind in EVENTS:
        return str(EVENTS[kind])
    return str(IdleStopStage(kind).label) if kind in IdleStopStage.values else kind


def act_words(verb: str) -> str:
    return str(OperationKind(verb).label)


def stop_words(stop: IdleStop) -> str:
    """Where it stands, in a few words."""
    if stop.stage == IdleStopStage.CANCELLED:
        return _("called off: %(why)s") % {"why": why_words(stop.why)}
    if stop.stage == IdleStopStage.GRACE and stop.deadline is not None:
        return _("“%(act)s” at %(at)s unless it is used") % {"act": act_words(stop.verb), "at": moment(stop.deadline)}
    return str(IdleStopStage(stop.stage).label)


def moment(at: datetime) -> str:
    return date_format(timezone.localtime(at), "Y-m-d H:i")


def warned_words(values: Values) -> str:
    said = {"act": act_words(values["act"]), "policy": values["policy"], "quiet": quiet_words(values)}
    if outcome := values.get("outcome"):
        return _over(values, outcome)
    if deadline := values.get("deadline"):
        said["at"] = _at(deadline)
        if values.get("put_off"):
            return _("%(quiet)s. Office hours have begun: “%(act)s” waits until %(at)s") % said
        return _("%(quiet)s. The policy %(policy)s does “%(act)s” at %(at)s unless it is used") % said
    said |= {"n": values["grace_minutes"], "at": _at(values["earliest"])}
    return (
        _(
            "%(quiet)s. The policy %(policy)s does “%(act)s” %(n)d minutes after this message, at %(at)s or later, unless it is used"
        )
        % said
    )


def failed_words(values: Values) -> str:
    if outcome := values.get("outcome"):
        return _over(values, outcome)
    said = {
        "act": act_words(values["act"]),
        "at": _at(values["asked_at"]),
        "n": values["orders"],
        "seen": _seen(values),
    }
    text = _("“%(act)s” was asked for at %(at)s, %(n)d times so far; the provider shows: %(seen)s") % said
    if values["error"]:
        text = _("%(text)s; %(error)s") % {"text": text, "error": failure_words(values["error"])}
    if values["burnt"] is not None:
        money = money_text(Decimal(values["burnt"]), values["currency"])
        text = _("%(text)s; %(money)s burnt since") % {"text": text, "money": money}
    return text


def idle_words(values: Values) -> str:
    text = quiet_words(values)
    if not values["why_not"]:
        return _("%(text)s; the policy %(policy)s only tells") % {"text": text, "policy": values["policy"]}
    return _("%(text)s; it is not stopped: %(why)s") % {"text": text, "why": why_words(values["why_not"])}


def quiet_words(values: Values) -> str:
    """With the first of the readings that decided it."""
    said = _("idle since %(at)s") % {"at": _at(values["quiet_since"])} if values["quiet_since"] else _("idle")
    readings = "; ".join(reason_text(reason) for reason in values["because"][:READINGS])
    return _("%(quiet)s (%(readings)s)") % {"quiet": said, "readings": readings} if readings else said


def _over(values: Values, outcome: str) -> str:
    if outcome == "stopped":
        return _("stopped: its provider showed it at %(at)s") % {"at": _at(values["proved_at"])}
    return _("called off: %(why)s") % {"why": why_words(outcome)}


def _seen(values: Values) -> str:
    if not values["seen"]:
        return _("nothing yet")
    state = str(STATES[InstanceState(values["seen"])])
    if not values["billing"]:
        return state
    return f"{state}, {BILLINGS[Billing(values['billing'])]}"


def _at(text: str) -> str:
    return moment(datetime.fromisoformat(text))


def register() -> None:
    register_words("idle_stop", warned_words)
    register_words("idle_failed", failed_words)
    register_words("machine_idle", idle_words)
    register_closed(CLOSED)
    register_cause(
        Cause(
            telling.WARNED,
            gettext_lazy("is idle and is to be stopped"),
            gettext_lazy(
                "Do nothing if nobody needs it. Any use of it calls the stop off; so does a link below, or a hold on its page. "
                "Save what is only in its memory."
            ),
            quietable=False,
        )
    )
    register_cause(
        Cause(
            telling.FAILED,
            gettext_lazy("was told to stop and runs on"),
            gettext_lazy(
                "It is billed on. Stop it in the provider's console, and look there at what it is charged for. Rackrent goes on asking, "
                "and says every hour what it has burnt."
            ),
            quietable=False,
        )
    )
    register_cause(
        Cause(
            alone.IDLE,
            gettext_lazy("is idle"),
            gettext_lazy(
                "Stop it, or give it back, if nobody needs it. If it is needed, hold it with a reason, and this alert ends."
            ),
            quietable=False,
        )
    )
