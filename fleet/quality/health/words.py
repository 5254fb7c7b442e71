"""What is said of faults, days and providers."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.formats import duration_text
from fleet.quality.health.score import FAULTS, Kind, Sums

KINDS: Mapping[str, str | Promise] = {
    Kind.XID: gettext_lazy("XID errors of the card"),
    Kind.PROGRAM_XID: gettext_lazy("XID errors of programs"),
    Kind.ECC: gettext_lazy("uncorrected memory errors"),
    Kind.REMAP: gettext_lazy("memory rows that could not be remapped"),
    Kind.LOST: gettext_lazy("lost GPUs"),
    Kind.RESET: gettext_lazy("GPUs that had to be reset"),
    Kind.HUNG: gettext_lazy("hung drivers"),
    Kind.NOT_AS_RENTED: gettext_lazy("not what was rented"),
    Kind.SHORT: gettext_lazy("short of what was promised"),
    Kind.UNREACHABLE: gettext_lazy("went quiet"),
    Kind.FAILED_START: gettext_lazy("starts that failed"),
}
# Below this a figure about heat or loss says nothing.
LEAST_SECONDS = 300


def counts_text(counts: Mapping[str, int]) -> str:
    """As "lost GPUs 1, XID errors of the card 1"; kinds of another release as they stand."""
    told = [f"{KINDS.get(kind, kind)} {count}" for kind, count in counts.items() if kind != FAULTS]
    return _(", ").join(told)


def faults_text(count: int) -> str:
    return ngettext("%(n)d fault", "%(n)d faults", count) % {"n": count} if count else _("no fault")


def fared_text(sums: Sums) -> str:
    """As "1 fault in 412 GPU-days"."""
    days = f"{sums.gpu_days:,.0f}" if sums.gpu_days >= 10 else f"{sums.gpu_days:.1f}".removesuffix(".0")
    return _("%(faults)s in %(days)s GPU-days") % {"faults": faults_text(sums.faults), "days": days}


def lasting_text(throttled_seconds: float, lost_seconds: float) -> str:
    """How long GPUs were held back or lost, of all of them together."""
    told = []
    if throttled_seconds >= LEAST_SECONDS:
        told.append(_("held back by heat or power for up to %(time)s of GPU time") % {"time": duration_text(throttled_seconds)})  # fmt: skip
    if lost_seconds >= LEAST_SECONDS:
        told.append(_("lost for %(time)s of GPU time") % {"time": duration_text(lost_seconds)})
    return _(", ").join(told)
