"""What people type about sources."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.inventory.models import Instance
from fleet.teams.fields import LineField
from fleet.teams.models import Team
from fleet.telemetry.sources.manage import HISTORY_CHOICES_HOURS, INTERVAL_CHOICES_SECONDS, SourceWords
from fleet.telemetry.sources.models import PrometheusSource

_HOURS = {0: _("from now on"), 6: _("6 hours back"), 24: _("a day back"), 46: _("46 hours back")}


class SourceForm(forms.Form):
    name = LineField(label=_("Name"), max_length=80)
    url = LineField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://prometheus.example"}),
        help_text=_("what stands before /api/v1/query, as this dashboard's workers reach it"),
    )
    token = forms.CharField(
        label=_("Bearer token"),
        max_length=2000,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("only where it asks for one; it is kept encrypted"),
    )
    tenant = LineField(
        label=_("Tenant"), max_length=150, required=False, help_text=_("sent as X-Scope-OrgID to Mimir and Thanos")
    )
    selector = LineField(
        label=_("Only series with"),
        max_length=300,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": 'cluster="a"'}),
        help_text=_("matchers as in PromQL, without braces"),
    )
    gpu_label = LineField(
        label=_("Label of GPU series that names the machine"),
        max_length=80,
        initial="Hostname",
        help_text=_("a port after it is left out; where it is missing, hostname, node and instance are tried"),
    )
    host_label = LineField(
        label=_("Label of node_exporter's series that names the machine"), max_length=80, initial="instance"
    )
    adds_machines = forms.BooleanField(
        label=_("Add machines that are not listed"),
        required=False,
        help_text=_("otherwise labels without a machine wait here until one is chosen"),
    )
    interval_seconds = forms.TypedChoiceField(
        label=_("Read every"),
        coerce=int,
        initial=30,
        choices=[(seconds, f"{seconds} s") for seconds in INTERVAL_CHOICES_SECONDS],
    )

    def words(self) -> SourceWords:
        names = ("name", "url", "tenant", "selector", "gpu_label", "host_label", "adds_machines", "interval_seconds")
        return SourceWords(**{name: self.cleaned_data[name] for name in names})


class NewSourceForm(SourceForm):
    history_hours = forms.TypedChoiceField(
        label=_("Begin"), coerce=int, initial=6, choices=[(hours, _HOURS[hours]) for hours in HISTORY_CHOICES_HOURS]
    )


class KnownSourceForm(SourceForm):
    """One that is there already. Its token is not shown; an empty field keeps it."""

    drop_token = forms.BooleanField(label=_("Without a token"), required=False, help_text=_("forgets the one kept"))
    enabled = forms.BooleanField(label=_("Read it"), required=False)

    def __init__(self, *args: Any, source: PrometheusSource, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if source.token:
            self.fields["token"].help_text = _("one is kept; empty keeps it")
        else:
            del self.fields["drop_token"]

    @staticmethod
    def initial_of(source: PrometheusSource) -> dict[str, Any]:
        return {name: getattr(source, name) for name in KnownSourceForm.base_fields if hasattr(source, name)} | {
            "token": ""
        }

    def typed_token(self) -> str | None:
        """None: the one that is kept."""
        return "" if self.cleaned_data.get("drop_token") else self.cleaned_data["token"] or None


class ChosenMachineForm(forms.Form):
    instance: forms.ModelChoiceField[Instance] = forms.ModelChoiceField(
        Instance.objects.none(), label=_("Machine"), required=False, empty_label=_("none")
    )

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        machines = Instance.objects.filter(team=team, gone_at=None).order_by("name")
        self.fields["instance"].queryset = machines  # type: ignore[attr-defined]
