"""The words for the seven states, and what decided them. Pages, alerts and messages all say it with these."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.states import GpuState, Verdict

STATE_WORDS: dict[GpuState, str | Promise] = {
    GpuState.WORKING: _("Working"),
    GpuState.HELD_IDLE: _("Held idle"),
    GpuState.FREE: _("Free"),
    GpuState.STARVED: _("Starved"),
    GpuState.STALLED: _("Stalled"),
    GpuState.UNKNOWN: _("Unknown"),
    GpuState.STOPPED: _("Stopped"),
}
COUNTS: dict[GpuState, str | Promise] = {
    GpuState.WORKING: _("%(n)d working"),
    GpuState.HELD_IDLE: _("%(n)d held idle"),
    GpuState.FREE: _("%(n)d free"),
    GpuState.STARVED: _("%(n)d starved"),
    GpuState.STALLED: _("%(n)d stalled"),
    GpuState.UNKNOWN: _("%(n)d unknown"),
    GpuState.STOPPED: _("%(n)d stopped"),
}
REASONS: dict[str, str | Promise] = {
    "lost": _("the GPU is lost"),
    "no_report": _("never reported"),
    "silent": _("no report"),
    "not_read": _("utilization could not be read"),
    "memory_not_read": _("memory could not be read"),
}


def state_word(state: GpuState) -> str:
    return str(STATE_WORDS[state])


def state_words(counts: Mapping[GpuState, int]) -> str:
    """A sentence's part such as "6 working, 2 held idle", in the order of `counts`."""
    return ", ".join(count_words(state, number) for state, number in counts.items() if number)


def count_words(state: GpuState, number: int) -> str:
    return str(COUNTS[state]) % {"n": number}


def why_unknown(verdict: Verdict) -> str:
    """The reason of an UNKNOWN verdict in words; "" for any other state."""
    reason = dict(verdict.because).get("reason")
    return str(REASONS[str(reason)]) if reason else ""
