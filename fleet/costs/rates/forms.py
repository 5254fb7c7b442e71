"""What people type about exchange rates."""

from __future__ import annotations

from datetime import date
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.costs.rates.sheet import MOST_SOURCE, Rate, RateSheet, rate_of, read_rates
from fleet.inventory.offers.forms import DAY
from fleet.inventory.offers.sheet import CellError
from fleet.teams.fields import LineField
from fleet.teams.pasted import FileOrText


class RateForm(forms.Form):
    """Read as a line of a file is, so that both refuse the same in the same words."""

    currency = LineField(label=_("Currency"), max_length=20, help_text=_("three letters, as CNY"))
    rate = LineField(label=_("Rate"), max_length=40, help_text=_("how much one of it is, as 0.1389"))
    into = LineField(label=_("Into"), max_length=20, help_text=_("the currency of the rate, as USD"))
    day = forms.CharField(
        label=_("From day"),
        widget=forms.DateInput(format=DAY, attrs={"type": "date"}),
        help_text=_("until there is a newer rate"),
    )
    source = LineField(label=_("Source"), max_length=MOST_SOURCE, required=False, help_text=_("where it is from"))

    def __init__(self, *args: Any, latest: date, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.latest = latest

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                given["parsed"] = rate_of(given, latest=self.latest, source="")
            except CellError as error:
                self.add_error(error.column, error.text)
        return given

    def parsed(self) -> Rate:
        """Only of a valid form."""
        rate: Rate = self.cleaned_data["parsed"]
        return rate


class RatesForm(FileOrText):
    """A file or pasted text."""

    too_large = _("The file is larger than 2 MB. Import it in parts.")

    file = forms.FileField(
        label=_("File"), required=False, help_text=_("CSV with the columns currency,into,day,rate,source, up to 2 MB")
    )
    csv = forms.CharField(
        label=_("or its text"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 5, "class": "input mono", "spellcheck": "false"}),
    )

    def sheet(self, *, latest: date) -> RateSheet:
        """Only of a valid form."""
        file = self.cleaned_data.get("file")
        return read_rates(self.cleaned_data["csv"], latest=latest, source=str(file.name) if file else "")
