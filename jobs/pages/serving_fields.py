"""What the form of a job asks of one that serves; shown for that kind alone."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.teams.fields import LineField
from jobs.book.models import JobKind
from jobs.book.serving import MOST_RESTARTS, Engine, Restart

PREFIX = "serving_"


class ServingFields(forms.Form):
    """Named after the parts of Order.serving."""

    serving_port = forms.IntegerField(
        label=_("Port"), required=False, min_value=1, max_value=65_535, help_text=_("On the machine; nothing is opened")
    )
    serving_engine = forms.ChoiceField(
        label=_("Engine"),
        required=False,
        choices=Engine.choices,
        initial=Engine.VLLM,
        help_text=_("Whose metrics it shows"),
    )
    serving_model = LineField(
        label=_("Model"),
        required=False,
        max_length=200,
        help_text=_("As /v1/models names it; empty: whichever is there"),
    )
    serving_health_path = LineField(
        label=_("Health path"),
        required=False,
        max_length=200,
        initial="/health",
        help_text=_("Answers 200 when it is well"),
    )
    serving_metrics_port = forms.IntegerField(
        label=_("Port of its metrics"),
        required=False,
        min_value=1,
        max_value=65_535,
        help_text=_("Where it is another one, as 8002 for Triton"),
    )
    serving_timeout_seconds = forms.FloatField(
        label=_("Clients wait, s"),
        required=False,
        min_value=0.001,
        max_value=86_400,
        help_text=_("What takes longer has timed out; empty: 30 s"),
    )
    serving_restart = forms.ChoiceField(
        label=_("Start it anew"), required=False, choices=Restart.choices, initial=Restart.NEVER
    )
    serving_most_restarts = forms.IntegerField(
        label=_("Restarts in a row"), required=False, initial=3, min_value=0, max_value=MOST_RESTARTS
    )


def take_serving(given: dict[str, Any]) -> dict[str, Any]:
    """Takes the fields out of what was given. Returns Order.serving: empty for other kinds, whose fields nobody saw."""
    names = [name for name in given if name.startswith(PREFIX)]
    values = {name.removeprefix(PREFIX): given.pop(name) for name in names}
    if given["kind"] != JobKind.SERVING:
        return {}
    return {name: value for name, value in values.items() if value not in (None, "")}
