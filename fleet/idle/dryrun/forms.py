"""What a dry run is asked for: how long idle, over how many days, and what a wrong stop costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.idle.backtest.recommend import PRESETS
from fleet.idle.dryrun.costs import OWN, RESTART, WrongStop
from fleet.idle.policies.models import IdlePolicy

DAYS = (7, 30, 90)
DEFAULT_DAYS = 30
SHORTEST_MINUTES, LONGEST_MINUTES = 5, 7 * 24 * 60
HIGHEST_GPU_HOURS = 10_000
COSTS = {
    RESTART: _("the time to start again"),
    "careful": _("much: 8 GPU-hours"),
    "balanced": _("some: 2 GPU-hours"),
    "eager": _("little: half a GPU-hour"),
    OWN: _("a figure of our own"),
}


class DryRunForm(forms.Form):
    """Everything may be left out: then it is as the policy says."""

    window = forms.IntegerField(
        required=False,
        min_value=SHORTEST_MINUTES,
        max_value=LONGEST_MINUTES,
        label=_("Idle window"),
        error_messages={
            "invalid": _("Give the idle window as whole minutes, as 60."),
            "min_value": _("An idle window has at least %(limit_value)s minutes."),
            "max_value": _("An idle window has at most %(limit_value)s minutes."),
        },
    )
    days = forms.TypedChoiceField(
        required=False,
        coerce=int,
        choices=[(days, days) for days in DAYS],
        label=_("Over"),
        error_messages={"invalid_choice": _("Choose 7, 30 or 90 days.")},
    )
    cost = forms.ChoiceField(
        required=False,
        choices=COSTS.items(),
        label=_("A wrong stop costs"),
        error_messages={"invalid_choice": _("Choose restart, careful, balanced, eager or own.")},
    )
    gpu_hours = forms.FloatField(
        required=False,
        min_value=0,
        max_value=HIGHEST_GPU_HOURS,
        label=_("GPU-hours"),
        error_messages={
            "invalid": _("Give the GPU-hours as a number, as 2.5."),
            "min_value": _("A wrong stop costs at least 0 GPU-hours."),
            "max_value": _("A wrong stop costs at most %(limit_value)s GPU-hours."),
        },
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """`window` None: the policy's own."""

    days: int
    window: timedelta | None
    cost: WrongStop

    @classmethod
    def of(cls, policy: IdlePolicy, given: Mapping[str, Any]) -> Asked:
        """`given`: cleaned values of the form."""
        minutes = given.get("window")
        return cls(
            given.get("days") or DEFAULT_DAYS,
            None if minutes is None else timedelta(minutes=minutes),
            cost_of(policy, given.get("cost") or "", given.get("gpu_hours")),
        )


def cost_of(policy: IdlePolicy, choice: str, gpu_hours: float | None) -> WrongStop:
    """As the policy says, unless something else was asked for."""
    own = WrongStop(policy.wrong_stop_gpu_hours, policy.restart_minutes)
    if choice == RESTART:
        return WrongStop(None, policy.restart_minutes)
    if choice in PRESETS:
        return WrongStop(PRESETS[choice], policy.restart_minutes)
    if choice == OWN and gpu_hours is not None:
        return WrongStop(gpu_hours, policy.restart_minutes)
    return own
