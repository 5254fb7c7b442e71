"""What an alert says: its title, why, its signals, what to do. Made from rows in the reader's language.

Everything here is plain text. Names that providers and agents gave are in it: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.alerts.causes import cause_of
from fleet.alerts.channels.words import failure_text
from fleet.alerts.models import Alert, Signal
from fleet.alerts.rule_words import rule_words
from fleet.alerts.xid_words import xid_words
from fleet.formats import amounts_text, money_text
from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.words import failure_words
from fleet.inventory.provider_word.words import NOTICES
from fleet.inventory.words import STATES, drift_words
from fleet.providers.base import InstanceState, NoticeKind
from fleet.telemetry.words import nvml_word

Values = Mapping[str, Any]

CLOSED_WORDS: dict[str, str | Promise] = {
    "evidence": gettext_lazy("the evidence shows that it is over"),
    "rule_off": gettext_lazy("its rule was switched off"),
    "rule_changed": gettext_lazy("its rule was changed"),
    "folded": gettext_lazy("it became part of a larger alert"),
    "off": gettext_lazy("the machine was switched off"),
    "gone": gettext_lazy("the machine was given back"),
    "person": gettext_lazy("somebody put it away"),
    "removed": gettext_lazy("what it was about was removed"),
    "channel_off": gettext_lazy("the channel was removed or switched off"),
    "silent": gettext_lazy("nothing was measured for a day that could tell"),
}
# Why a snoozed or quiet alert came back (values["why"] of a "woke" event).
WOKE_WORDS: Mapping[str, str | Promise] = {
    "time": gettext_lazy("the snooze is over"),
    "worse": gettext_lazy("it got worse"),
    "signal": gettext_lazy("something else was added"),
    "maintenance": gettext_lazy("the maintenance window is over and it goes on"),
    "person": gettext_lazy("somebody woke it"),
    "person_left": gettext_lazy("whoever acknowledged it has left the team"),
}
OWN_PARTS: Mapping[str, str | Promise] = {
    "beat": gettext_lazy("the scheduler has sent nothing"),
    "worker": gettext_lazy("the worker has done nothing"),
    "broker": gettext_lazy("the broker cannot be reached"),
    "rollups": gettext_lazy("rollups are late: charts and costs stand still"),
    "ingest": gettext_lazy("readings are not taken in"),
    "sending": gettext_lazy("messages are not sent: nobody runs the worker `outside`, or it hangs"),
    "operations": gettext_lazy("operations are not driven: nobody runs the worker `outside`, or it hangs"),
    "evaluation": gettext_lazy("alert rules were not evaluated"),
    "probe": gettext_lazy("a check of Rackrent itself failed"),
}


# Of the rooms above: by what a subject begins with, which of the values names it.
_named: dict[str, str] = {}


def register_words(kind: str, words: Callable[[Values], str], *, named: str = "") -> None:
    """For the rooms above: what signals of `kind` say, also those of a family ("budget:80"). `named`: the value that subjects "kind:…" are called by."""
    if kind in _words:
        raise ValueError(f"The words of {kind!r} are registered already")
    _words[kind] = words
    if named:
        _named[kind] = named


def register_closed(words: Mapping[str, str | Promise]) -> None:
    """For the rooms above: why alerts of theirs closed, by the code that they clear them with."""
    CLOSED_WORDS.update(words)


def subject_name(alert: Alert) -> str:
    """What a room above named it by; the machine, else the account, what a launch would have been called, the channel, else the team."""
    if (named := _named.get(alert.subject.partition(":")[0])) is not None:
        return str(alert.evidence.get("values", {}).get(named, ""))
    if alert.instance is not None:
        return alert.instance.name
    if alert.account is not None and alert.subject.startswith("account:"):
        return alert.account.name
    if alert.subject.startswith("operation:"):
        return str(alert.evidence.get("values", {}).get("machine", ""))
    if alert.subject.startswith("channel:"):
        return str(alert.evidence.get("values", {}).get("channel", ""))
    return str(_("The fleet")) if alert.cause == "network.outage" else ""


def title_of(alert: Alert) -> str:
    """One sentence without a full stop: "train-01 went quiet"."""
    name, says = subject_name(alert), str(cause_of(alert.cause).title)
    return f"{name} {says}" if name else says


def why_of(alert: Alert) -> str:
    """The evidence of the worst signal."""
    evidence = alert.evidence
    text = values_words(str(evidence.get("kind", "")), evidence.get("values", {}))
    more = int(evidence.get("signals", 1)) - 1
    parts = [text]
    if more > 0:
        parts.append(ngettext("%(n)d more signal", "%(n)d more signals", more) % {"n": more})
    if amounts := evidence.get("at_stake"):
        money = amounts_text({currency: Decimal(amount) for currency, amount in amounts.items()})
        parts.append(_("at stake: %(money)s an hour") % {"money": money})
    return _("; ").join(parts)


def remedy_of(alert: Alert) -> str:
    """What to do. An XID has a remedy of its own."""
    evidence = alert.evidence
    if evidence.get("kind") == "xid":
        return str(xid_words(_number(evidence.get("values", {}), "code")).remedy)
    return str(cause_of(alert.cause).remedy)


def signal_words(signal: Signal) -> str:
    return values_words(signal.kind, signal.values)


def unanswered_words(minutes: int) -> str:
    """Why it was escalated by itself."""
    return ngettext("nobody answered for %(n)d minute", "nobody answered for %(n)d minutes", minutes) % {"n": minutes}


def closed_words(alert: Alert) -> str:
    return str(CLOSED_WORDS.get(alert.closed_why, alert.closed_why))


def values_words(kind: str, values: Values) -> str:
    """One line about a signal. One whose values are of another release says its rule's name."""
    words = _words.get(kind.partition(":")[0])
    try:
        text = words(values) if words else ""
    except (KeyError, TypeError, ValueError, InvalidOperation):
        text = ""
    text = text or str(rule_words(kind).name)
    gpu = _number(values, "gpu")
    return text if gpu is None else _("GPU %(index)d: %(text)s") % {"index": gpu, "text": text}


def _number(values: Values, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(text: str) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(text)), "Y-m-d H:i")


def _silent(values: Values) -> str:
    said = _("no report since %(at)s") % {"at": _moment(values["heard_at"])}
    if "machine" in values:
        said = _("%(machine)s: %(text)s") % {"machine": values["machine"], "text": said}
    provider = values.get("provider")
    if provider == "none":
        return _("%(text)s; no provider is asked about it") % {"text": said}
    if provider == "failing":
        return _("%(text)s; its provider cannot be read either") % {"text": said}
    state = str(STATES.get(str(provider), provider))  # type: ignore[call-overload]
    if values.get("billing") == "full":
        return _("%(text)s; %(account)s says %(state)s and bills it") % {
            "text": said,
            "account": values["account"],
            "state": state,
        }
    return _("%(text)s; %(account)s says %(state)s") % {"text": said, "account": values["account"], "state": state}


def _driver(values: Values) -> str:
    word = nvml_word(values["state"])
    return (
        _("NVML: %(word)s (%(detail)s)") % {"word": word, "detail": values["detail"]}
        if values.get("detail")
        else _("NVML: %(word)s") % {"word": word}
    )


def _poll(values: Values) -> str:
    if values.get("listed_at"):
        return _("no complete listing of %(account)s since %(at)s") % {
            "account": values["account"],
            "at": _moment(values["listed_at"]),
        }
    return _("%(account)s was never listed") % {"account": values["account"]}


def _xid(values: Values) -> str:
    code = values["code"]
    said = {"code": "?" if code is None else code, "meaning": xid_words(code).meaning, "n": values["times"]}
    return ngettext("XID %(code)s: %(meaning)s", "XID %(code)s, %(n)d times: %(meaning)s", values["times"]) % said


def _ecc(values: Values) -> str:
    parts = []
    if "uncorrected" in values:
        count = values["uncorrected"]
        parts.append(
            ngettext("%(n)d uncorrected memory error", "%(n)d uncorrected memory errors", count) % {"n": count}
        )
    if values.get("remap_failed"):
        parts.append(_("a memory row could not be replaced"))
    if values.get("remap_pending"):
        parts.append(_("a memory row waits for a reset to be replaced"))
    return ", ".join(parts)


def _thermal(values: Values) -> str:
    if "celsius" not in values:
        return _("slowed down for heat")
    slowed = _("%(celsius)d °C, slowed down for heat") if values["slowed"] else _("%(celsius)d °C")
    return slowed % {"celsius": values["celsius"]}


def _power(values: Values) -> str:
    if values.get("braked"):
        return _("the power supply slows it down")
    return _("limited to %(limit)d W where its like has %(full)d W") % {
        "limit": values["limit_watts"],
        "full": values["full_watts"],
    }


def _disk(values: Values) -> str:
    said = {"mount": values["mount"], "percent": values["percent"]}
    if "hours_left" not in values:
        return _("%(mount)s is %(percent)d %% full") % said
    return _("%(mount)s is %(percent)d %% full, and full in %(hours)s h at this rate") % {
        **said,
        "hours": f"{values['hours_left']:g}",
    }


def _price(values: Values) -> str:
    before, after = Decimal(values["before"]), Decimal(values["after"])
    currency = values.get("currency", "USD")
    said = {"before": money_text(before, currency), "after": money_text(after, currency), "percent": values["percent"]}
    return _("%(before)s an hour before, %(after)s now (%(percent)+d %%)") % said


def _asked(values: Values) -> str:
    said = {
        "act": OperationKind(values["act"]).label,
        "at": _moment(values["asked_at"]),
        "seen": STATES[InstanceState(values["seen"])] if values["seen"] else _("nothing yet"),
        "times": ngettext("sent once", "sent %(n)d times", values["attempts"]) % {"n": values["attempts"]},
    }
    if values["error"]:
        said["error"] = failure_words(values["error"])
        return _("“%(act)s” asked for %(at)s, %(times)s; %(error)s; the provider shows: %(seen)s") % said
    return _("“%(act)s” asked for %(at)s, %(times)s; the provider shows: %(seen)s") % said


def _notice(values: Values) -> str:
    parts = [str(NOTICES[NoticeKind(values["notice"])])]
    if values["starts_at"]:
        parts.append(_("from %(at)s") % {"at": _moment(values["starts_at"])})
    return ": ".join([", ".join(parts), *filter(None, [values["says"]])])


def _refused(values: Values) -> str:
    said = {"act": OperationKind(values["act"]).label, "error": failure_words(values["error"])}
    return _("“%(act)s” failed: %(error)s") % said


def _own(values: Values) -> str:
    part = str(values["part"])
    if part.startswith("rule:"):
        said = {"rule": rule_words(values["kind"]).name, "error": values["error"]}
        return _("the rule “%(rule)s” could not be evaluated (%(error)s)") % said
    return str(OWN_PARTS.get(part, part))


_words: dict[str, Callable[[Values], str]] = {
    "agent_silent": _silent,
    "channel.broken": lambda values: failure_text(str(values["code"])),
    "driver_hung": _driver,
    "poll_failing": _poll,
    "gpu_lost": lambda _values: _("the driver cannot read it"),
    "gpu_count": lambda values: _("%(found)d of %(paid)d GPUs are there") % values,
    "not_as_rented": lambda values: drift_words(values["what"], values["found"], values["rented"]),
    "xid": _xid,
    "ecc": _ecc,
    "thermal": _thermal,
    "power": _power,
    "gpu_memory": lambda values: _("%(percent)d %% of its memory is used") % values,
    "host_memory": lambda values: _("%(percent)d %% of the machine's memory is used") % values,
    "disk": _disk,
    "stalled": lambda values: (
        (
            _("%(percent)d %% busy at %(watts)d W")
            if "watts" in values
            else _("%(percent)d %% busy and computes nothing")
        )
        % values
    ),
    "starved": lambda values: _("%(percent)d %% busy, waiting for disks") % values,
    "agent_outdated": lambda values: _("version %(version)s, the dashboard has %(newest)s") % values,
    "clock_skew": lambda values: _("its clock is off by %(seconds)d s") % values,
    "agent_backlog": lambda values: _("readings wait since %(at)s") % {"at": _moment(values["oldest_at"])},
    "price_changed": _price,
    "unmanaged": lambda values: _("nobody registered %(machine)s") % values,
    "list_lost": lambda values: _("%(missing)d of %(known)d machines are not in the list any more") % values,
    "lease_ending": lambda values: _("its lease ends on %(at)s") % {"at": _moment(values["ends_at"])},
    "provider_notice": _notice,
    "stop_unconfirmed": _asked,
    "operation_unconfirmed": _asked,
    "operation_failed": _refused,
    "own_trouble": _own,
}
