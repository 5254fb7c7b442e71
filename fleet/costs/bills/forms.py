"""What people give with a bill: its file, whose it is, and how to read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.costs.bills.files.columns import NEEDED, OURS
from fleet.costs.bills.files.tables import MAX_BYTES
from fleet.inventory.models import ProviderAccount
from fleet.teams.fields import LineField
from fleet.teams.models import Team

COLUMN_WORDS: Mapping[str, str | Promise] = {
    "amount": _("Amount"),
    "start": _("Start"),
    "end": _("End"),
    "machine": _("Machine"),
    "resource": _("Volume, address or other resource"),
    "kind": _("What it is for"),
    "quantity": _("Quantity"),
    "unit": _("Unit"),
    "currency": _("Currency"),
    "description": _("Description"),
    "line_id": _("The line's own id"),
}


class BillForm(forms.Form):
    account = forms.ModelChoiceField(label=_("Account"), queryset=ProviderAccount.objects.none())
    file = forms.FileField(
        label=_("File"),
        help_text=_("CSV, or FOCUS 1.0 to 1.3 as CSV or Parquet, up to 8 MB and 50,000 lines"),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,.parquet"}),
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone of the bill"), initial="UTC", help_text=_("for dates and times that name none")
    )
    complete = forms.BooleanField(
        label=_("It is the whole bill of its months"),
        required=False,
        initial=True,
        help_text=_("lines that are here already and not in it no longer count; they are kept"),
    )

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        accounts = ProviderAccount.objects.filter(team=team).order_by("name")
        self.fields["account"].queryset = accounts  # type: ignore[attr-defined]  # of models
        zones = [(zone, zone) for zone in sorted(available_timezones())]
        self.fields["time_zone"].choices = zones  # type: ignore[attr-defined]  # a choice field

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(
                _("The file is larger than 8 MB. Import it in parts, a month or an account each.")
            )
        return file

    def reading(self) -> dict[str, Any]:
        """As an upload keeps it."""
        zone = ZoneInfo(self.cleaned_data["time_zone"]).key
        return {"time_zone": zone, "complete": self.cleaned_data["complete"], "columns": {}}


class ColumnsForm(forms.Form):
    """Which column of the file is what. One column may stand for one thing."""

    def __init__(self, data: Any, *, columns: Sequence[str], assigned: Mapping[str, str]) -> None:
        super().__init__(data, initial=dict(assigned) or guessed(columns))
        choices = [("", _("none")), *((name, name) for name in columns if name)]
        for name in OURS:
            self.fields[name] = forms.ChoiceField(
                label=str(COLUMN_WORDS[name]), choices=choices, required=name in NEEDED
            )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        chosen = [theirs for theirs in given.values() if theirs]
        for name, theirs in given.items():
            if theirs and chosen.count(theirs) > 1:
                self.add_error(name, _("This column is chosen twice."))
                break
        return given

    def assigned(self) -> dict[str, str]:
        return {ours: theirs for ours, theirs in self.cleaned_data.items() if theirs}


def guessed(columns: Sequence[str]) -> dict[str, str]:
    lower = {name.lower(): name for name in columns}
    return {ours: lower[ours] for ours in OURS if ours in lower}


class ReasonForm(forms.Form):
    reason = LineField(label=_("Why"), max_length=200, required=False)
