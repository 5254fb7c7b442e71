"""What people type about agents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.teams.models import Project, Team
from fleet.telemetry.agents import INTERVAL_CHOICES_SECONDS


class EnrolmentTokenForm(forms.Form):
    """Any number of machines of the team, or one that is listed already."""

    instance: forms.ModelChoiceField[Instance] = forms.ModelChoiceField(
        Instance.objects.none(),
        label=_("For"),
        required=False,
        empty_label=_("new machines"),
        help_text=_("a machine that its provider lists already, or machines that are not listed yet"),
    )
    max_uses = forms.IntegerField(
        label=_("Machines"), min_value=1, max_value=1000, initial=1, help_text=_("how many it may let in")
    )
    hours = forms.TypedChoiceField(
        label=_("Expires"),
        coerce=int,
        initial=24,
        choices=[(1, _("in an hour")), (24, _("in a day")), (168, _("in a week")), (720, _("in 30 days"))],
    )
    project: forms.ModelChoiceField[Project] = forms.ModelChoiceField(
        Project.objects.none(), label=_("Project"), required=False, empty_label=_("none")
    )

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        machines = Instance.objects.filter(team=team, gone_at=None, agent=None).order_by("name")
        self.fields["instance"].queryset = machines  # type: ignore[attr-defined]
        projects = Project.objects.filter(team=team, archived_at=None).order_by("name")
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]

    def lifetime(self) -> timedelta:
        return timedelta(hours=self.cleaned_data["hours"])


class IntervalForm(forms.Form):
    interval_seconds = forms.TypedChoiceField(
        coerce=int, choices=[(seconds, str(seconds)) for seconds in INTERVAL_CHOICES_SECONDS]
    )
