"""What is said of other tenants: signs with their figures, why there is no score, and the alert."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.alerts.causes import Cause
from fleet.formats import milliseconds_text, rate_text
from fleet.quality.neighbours.score import CALM_AT, FLAGGED_AT, Why

Words = Mapping[str, str | Promise]

SIGNS: Words = {
    "cpu_pressure": gettext_lazy("programs waited for a core %(now)s of the time, usually %(before)s"),
    "io_pressure": gettext_lazy("programs waited for a disk %(now)s of the time, usually %(before)s"),
    "iowait": gettext_lazy("cores waited for a disk %(now)s of the time, usually %(before)s"),
    "disk_latency": gettext_lazy("a disk answered after %(now)s, usually %(before)s"),
    "clocks": gettext_lazy("GPU clocks were %(now)s, usually %(before)s, and no GPU had a reason of its own"),
    "pcie": gettext_lazy("%(now)s between host and GPUs at full work, usually %(before)s"),
    "network": gettext_lazy("%(now)s over the network at full work, usually %(before)s"),
    "slower": gettext_lazy("its GPUs were at %(now)s, usually %(before)s"),
}
WHY_NOT: Words = {
    Why.EXCLUSIVE: gettext_lazy("The host is not shared."),
    Why.TENANCY_UNKNOWN: gettext_lazy("The provider does not say whether the host is shared."),
    Why.NOT_MEASURED: gettext_lazy("Too little was measured in this hour to say anything of other tenants."),
    Why.TOO_NEW: gettext_lazy("Too few hours are measured yet to know what the host gives when it is calm."),
    Why.OTHER_WORK: gettext_lazy(
        "Its own work changed: there are too few earlier hours like this one to compare with."
    ),
}
CAUSE = Cause(
    "machine.noisy_neighbour",
    gettext_lazy("seems to share its host with somebody who takes much of it"),
    gettext_lazy(
        "Compare the times below with how long your steps took. If it goes on, move the work to another host, or show the provider "
        "this evidence; a dedicated host has no neighbours."
    ),
)


def _percent(value: float) -> str:
    return f"{value:.0f}%" if value >= 10 or round(value, 1) == 0 else f"{value:.1f}%"


def _clock(value: float) -> str:
    return f"{value:,.0f} MHz"


FIGURES: Mapping[str, Callable[[float], str]] = {
    "disk_latency": milliseconds_text,
    "clocks": _clock,
    "pcie": rate_text,
    "network": rate_text,
}


def figure_text(code: str, value: float) -> str:
    return FIGURES.get(code, _percent)(value)


def reason_text(reason: Mapping[str, Any]) -> str:
    """One sign with its figures; a code of another release as it stands."""
    code = str(reason["code"])
    figures = {name: figure_text(code, reason[name]) for name in ("before", "now")}
    return str(SIGNS[code]) % figures if code in SIGNS else code


def level_text(score: int) -> str:
    if score >= FLAGGED_AT:
        return _("Others seem to take much of this host")
    return _("Others seem to take some of this host") if score >= CALM_AT else _("No sign of others on this host")


def alert_words(values: Mapping[str, Any]) -> str:
    hours = values["hours"]
    said = {"score": values["score"], "hours": ngettext("%(n)d hour", "%(n)d hours", hours) % {"n": hours}}
    text = _("%(score)d of 100 over %(hours)s while its own work stayed the same") % said
    reasons = [reason_text(reason) for reason in values["reasons"]]
    return _("%(text)s: %(reasons)s") % {"text": text, "reasons": "; ".join(reasons)} if reasons else text
