"""What history advises, in words, out of what a policy keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.formats import duration_text, number_text
from fleet.idle.dryrun.advice import FEWEST_DAYS, Why


def minutes_text(minutes: float) -> str:
    return duration_text(60 * minutes)


def gpu_hours_text(hours: float) -> str:
    """Whole from ten on: nobody stops a machine over a tenth of an hour."""
    return f"{hours:,.0f}" if abs(hours) >= 10 else f"{hours:,.1f}"


def advice_text(kept: Mapping[str, Any]) -> str:
    """Two sentences: what to do, and what it is founded on. `kept`: of plain.plain."""
    if kept["minutes"] is None:
        return _WHY[Why(kept["why"])](kept)
    after = ngettext("After %(minutes)d quiet minute.", "After %(minutes)d quiet minutes.", kept["minutes"])
    return f"{after % {'minutes': kept['minutes']}} {tried_text(kept)}"


def tried_text(kept: Mapping[str, Any]) -> str:
    told = {
        "days": kept["unseen_days"],
        "back": gpu_hours_text(kept["back"]),
        "idle": gpu_hours_text(kept["idle"]),
        "wrong": kept["wrong"],
    }
    if not kept["stops"]:
        said = ngettext(
            "On the %(days)d day that it did not learn from it would have stopped nothing.",
            "On the %(days)d days that it did not learn from it would have stopped nothing.",
            told["days"],
        )
    elif not told["wrong"]:
        said = ngettext(
            "On the %(days)d day that it did not learn from it would have given back %(back)s of %(idle)s GPU-hours and hit no run.",
            "On the %(days)d days that it did not learn from it would have given back %(back)s of %(idle)s GPU-hours and hit no run.",
            told["days"],
        )
    else:
        said = ngettext(
            "On the %(days)d days that it did not learn from it would have given back %(back)s of %(idle)s GPU-hours and hit %(wrong)d run.",
            "On the %(days)d days that it did not learn from it would have given back %(back)s of %(idle)s GPU-hours and hit %(wrong)d runs.",
            told["wrong"],
        )
    return said % told


def interval_text(kept: Mapping[str, Any]) -> str:
    """Empty where there is nothing to be unsure of."""
    low, high = kept["interval"]
    if kept["minutes"] is None or not kept["stops"]:
        return ""
    said = _("With other days and machines of this kind, net of wrong stops, it would be %(low)s to %(high)s GPU-hours nine times of ten.")  # fmt: skip
    return said % {"low": gpu_hours_text(low), "high": gpu_hours_text(high)}


def own_text(minutes: int, own: Mapping[str, Any]) -> str:
    said = _("after %(window)s instead: net %(net)s GPU-hours on unseen days, not %(group)s")
    return said % {
        "window": minutes_text(minutes),
        "net": number_text(own["net"]),
        "group": number_text(own["group_net"]),
    }


def _few_days(kept: Mapping[str, Any]) -> str:
    said = _("Not yet: %(days)d days of readings are too few to learn from, it takes %(fewest)d.")
    return said % {"days": kept["learned_days"], "fewest": FEWEST_DAYS}


def _no_gain(kept: Mapping[str, Any]) -> str:
    said = _("Better not to stop: on %(days)d days no time gave back clearly more than wrong stops would have cost.")
    return said % {"days": kept["learned_days"]}


def _lost_days(kept: Mapping[str, Any]) -> str:
    said = _("Better not to stop: %(window)s looked best on %(learned)d days, and would have lost %(lost)s GPU-hours on the %(unseen)d days after them.")  # fmt: skip
    return said % {
        "window": minutes_text(kept["best"]),
        "learned": kept["learned_days"],
        "unseen": kept["unseen_days"],
        "lost": gpu_hours_text(-kept["net"]),
    }


def _lost_machines(kept: Mapping[str, Any]) -> str:
    said = _("Better not to stop: what half of the machines taught would have lost %(lost)s GPU-hours on the other half.")  # fmt: skip
    return said % {"lost": gpu_hours_text(-(kept["machines_net"] or 0.0))}


_WHY = {
    Why.FEW_DAYS: _few_days,
    Why.NO_GAIN: _no_gain,
    Why.LOST_DAYS: _lost_days,
    Why.LOST_MACHINES: _lost_machines,
}
