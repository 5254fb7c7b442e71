"""What verdicts say, in the reader's language. Subjects come from machines: they are plain text, and pages escape them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext, pgettext_lazy

from fleet.formats import bytes_text, number_text, rate_text

__all__ = ["answer_text", "reason_text"]

Text = Any
Shown = Callable[[Any], str]

ANSWERS: Mapping[str, Text] = {
    "active": pgettext_lazy("idle verdict", "in use"),
    "idle": pgettext_lazy("idle verdict", "idle"),
    "unknown": pgettext_lazy("idle verdict", "not known"),
    "off": pgettext_lazy("idle verdict", "off"),
}


def _percent(value: Any) -> str:
    return f"{number_text(float(value))} %"


def _share(value: Any) -> str:
    return _percent(100 * float(value))


def _hours(value: Any) -> str:
    return f"{float(value):g}"


def _watts(value: Any) -> str:
    return f"{number_text(float(value))} W"


def _count(value: Any) -> str:
    return f"{int(value):,}"


def _moment(value: Any) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(value)), pgettext("date format", "j M H:i"))


@dataclass(frozen=True, slots=True)
class Words:
    """`text` takes %(subject)s, %(value)s and %(limit)s; `bare`: where there is no value to tell."""

    text: Text
    shown: Shown = str
    shown_limit: Shown | None = None
    bare: Text = ""

    def say(self, reason: Mapping[str, Any]) -> str:
        value, limit = reason.get("value"), reason.get("limit")
        if value is None and self.bare:
            return str(self.bare) % {"subject": reason.get("subject", "")}
        return str(self.text) % {
            "subject": reason.get("subject", ""),
            "value": "" if value is None else self.shown(value),
            "limit": "" if limit is None else (self.shown_limit or self.shown)(limit),
        }


# What shows use.
_USE: Mapping[str, Words] = {
    "utilization": Words(_("%(subject)s was up to %(value)s busy"), _percent),
    "sm_activity": Words(_("%(subject)s: its multiprocessors were up to %(value)s active"), _share),
    "tensor_activity": Words(_("%(subject)s: its tensor cores were up to %(value)s active"), _share),
    "dram_activity": Words(_("%(subject)s: its memory was up to %(value)s active"), _share),
    "power": Words(_("%(subject)s drew up to %(value)s; at rest it draws less than %(limit)s"), _watts),
    "worked": Words(_("%(subject)s worked, last at %(value)s"), _moment),
    "stalled": Words(
        _("%(subject)s is stalled: at least %(value)s busy all the time at the power of a GPU that rests; that needs a person, not a stop"),
        _percent,
    ),
    "serves": Words(_("Serves %(subject)s")),
    "requests": Words(_("%(subject)s answered requests: %(value)s"), _count),
    "requests_waiting": Words(_("%(subject)s has requests that run or wait: %(value)s"), _count),
    "cpu": Words(_("The CPU was up to %(value)s busy (from %(limit)s on that counts)"), _percent),
    "disk": Words(_("The disks moved up to %(value)s (from %(limit)s on that counts)"), rate_text),
    "network": Words(_("The network moved up to %(value)s (from %(limit)s on that counts)"), rate_text),
    "busy_kernels": Words(_("Notebook kernels that compute: %(value)s"), _count),
    "kernel_active": Words(_("Somebody used a notebook, last at %(value)s"), _moment),
    "ssh_sessions": Words(
        _("Open SSH sessions: %(value)s; they count for %(limit)s h after the last other use"), _count, _hours
    ),
    "pinned": Words(_("Pinned: never idle")),
    "off": Words(_("Switched off")),
}  # fmt: skip
# What keeps rest from being proved.
_MISSING: Mapping[str, Words] = {
    "provider_unclear": Words(_("The provider's list is old, failed, in doubt, or says that the machine changes its state")),
    "driver_hung": Words(_("The GPU driver does not answer")),
    "readings_unreachable": Words(_("The store of readings could not be asked")),
    "no_report": Words(_("No GPU reports")),
    "gpus_missing": Words(_("%(value)s of %(limit)s GPUs report"), _count, bare=_("It is not known how many GPUs are rented")),
    "gpu_lost": Words(_("%(subject)s is lost")),
    "not_read": Words(_("%(subject)s: its utilization is not read")),
    "stale": Words(_("%(subject)s: nothing since %(value)s"), _moment, bare=_("%(subject)s: never read")),
    "from_the_future": Words(_("%(subject)s: its newest reading is of %(value)s, which is still to come"), _moment),
    "sparse": Words(_("%(subject)s: %(value)s of the time was read; %(limit)s are needed"), _share),
    "host_not_read": Words(_("CPU, disks and network are not read")),
    "host_reading_missing": Words(_("Not read: %(subject)s")),
    "no_endpoint": Words(_("Used for serving, and no model is seen to be served")),
    "never_ready": Words(_("%(subject)s was never ready")),
    "requests_not_read": Words(_("%(subject)s: its requests were counted for %(value)s of the time; %(limit)s are needed"), _share),
    "ready_too_lately": Words(_("%(subject)s is ready only since %(value)s"), _moment),
    "start_unknown": Words(_("It is not known since when it runs")),
    "started_lately": Words(_("Started, or set up anew, at %(value)s"), _moment),
    "clock_jumped": Words(_("Its clock jumped at %(value)s"), _moment),
}  # fmt: skip
# What was read and stayed below its limit.
_REST: Mapping[str, Words] = {
    "utilization": Words(_("GPUs were at most %(value)s busy in any reading"), _percent),
    "sm_activity": Words(_("Multiprocessors were at most %(value)s active"), _share),
    "memory_held": Words(_("%(value)s of %(limit)s of GPU memory held"), bytes_text),
    "cpu": Words(_("CPU at most %(value)s busy"), _percent),
    "disk": Words(_("Disks at most %(value)s"), rate_text),
    "network": Words(_("Network at most %(value)s"), rate_text),
    "forgotten_session": Words(_("Open SSH sessions: %(value)s, and nothing else for %(limit)s h"), _count, _hours),
    "requests": Words(_("%(subject)s had no request")),
}  # fmt: skip
_NEVER = Words(_("GPUs read 0 %% in every reading"))
_HELD_ALONE = Words(_("%(value)s of GPU memory held"), bytes_text)
_HOLDS: Mapping[str, Text] = {
    "hold_job": _("A job holds it"),
    "hold_person": _("Somebody holds it"),
    "hold_heartbeat": _("A run says that it is alive"),
}
_SUBJECTS: Mapping[str, Text] = {
    "host": pgettext_lazy("subject of a verdict", "machine"),
    "cpu": pgettext_lazy("subject of a verdict", "CPU"),
    "disk": pgettext_lazy("subject of a verdict", "disks"),
    "network": pgettext_lazy("subject of a verdict", "network"),
}


def answer_text(answer: str) -> str:
    return str(ANSWERS.get(answer, answer))


def reason_text(reason: Mapping[str, Any]) -> str:
    """Of one of IdleVerdictRow.because. A code from a newer release is shown as it is."""
    code = str(reason["code"])
    told = {**reason, "subject": str(_SUBJECTS.get(str(reason.get("subject", "")), reason.get("subject", "")))}
    if code in _HOLDS:
        return _hold_text(code, told)
    words = _rest_of(code, told) or _USE.get(code) or _MISSING.get(code) or _REST.get(code)
    return words.say(told) if words else code


def _rest_of(code: str, reason: Mapping[str, Any]) -> Words | None:
    """None for readings that show use, and for what is no reading."""
    value, limit = reason.get("value"), reason.get("limit")
    if code not in _REST or value is None:
        return None
    if code == "memory_held":
        return _REST[code] if limit else _HELD_ALONE
    if code == "utilization" and value == 0:
        return _NEVER
    shows_use = value > 0 if code == "requests" else limit is not None and value >= limit
    return _REST[code] if code == "forgotten_session" or not shows_use else None


def _hold_text(code: str, reason: Mapping[str, Any]) -> str:
    text, owner, until = str(_HOLDS[code]), reason["subject"], reason.get("value")
    if owner:
        text = str(_("%(hold)s: %(owner)s")) % {"hold": text, "owner": owner}
    if until:
        text = str(_("%(hold)s, until %(until)s")) % {"hold": text, "until": _moment(until)}
    return text
