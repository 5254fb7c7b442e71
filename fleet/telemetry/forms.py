"""What people type about agents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team
from fleet.telemetry.agents import INTERVAL_CHOICES_SECONDS
from fleet.telemetry.models import ScrapeKind, ScrapeTarget
from fleet.telemetry.scrape.targets import INTERVAL_CHOICES_SECONDS as SCRAPE_INTERVALS_SECONDS


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


class TargetForm(forms.Form):
    """An exporter of one machine."""

    url = LineField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "http://host.example:9400/metrics"}),
        help_text=_("as this dashboard's workers reach it"),
    )
    ssh = LineField(
        label=_("Through SSH"),
        max_length=330,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "user@host.example:22", "autocapitalize": "off"}),
        help_text=_("then the address is one on the machine itself, as http://127.0.0.1:9469/metrics; empty: directly"),
    )
    kind = forms.ChoiceField(label=_("Exporter"), choices=ScrapeKind.choices, initial=ScrapeKind.AUTO)
    interval_seconds = forms.TypedChoiceField(
        label=_("Read every"),
        coerce=int,
        initial=30,
        choices=[(seconds, f"{seconds} s") for seconds in SCRAPE_INTERVALS_SECONDS],
    )
    token = forms.CharField(
        label=_("Bearer token"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("only where the exporter asks for one; it is kept encrypted"),
    )

    def arguments(self) -> dict[str, Any]:
        """For add_target."""
        return {name: self.cleaned_data[name] for name in ("url", "ssh", "kind", "interval_seconds", "token")}


class KnownTargetForm(TargetForm):
    """One that is there already. Its token is not shown; an empty field keeps it."""

    drop_token = forms.BooleanField(label=_("Without a token"), required=False, help_text=_("forgets the one kept"))
    enabled = forms.BooleanField(label=_("Read it"), required=False)

    def __init__(self, *args: Any, target: ScrapeTarget, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if target.token:
            self.fields["token"].help_text = _("one is kept; empty keeps it")
        else:
            del self.fields["drop_token"]

    @staticmethod
    def initial_of(target: ScrapeTarget) -> dict[str, Any]:
        return {name: getattr(target, name) for name in ("url", "ssh", "kind", "interval_seconds", "enabled")}

    def arguments(self) -> dict[str, Any]:
        """For update_target."""
        kept = None if not self.cleaned_data["token"] else self.cleaned_data["token"]
        token = "" if self.cleaned_data.get("drop_token") else kept
        return {**super().arguments(), "enabled": self.cleaned_data["enabled"], "token": token}
