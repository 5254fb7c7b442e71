"""What people type about lists of offers and about providers."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.inventory.offers.search_form import CurrencyField
from fleet.inventory.offers.sheet import About, Sheet, read_sheet
from fleet.teams.fields import LineField
from fleet.teams.pasted import FileOrText

# What browsers send and take, whatever the language of the page.
DAY = "%Y-%m-%d"
STARS = ((5, "5"), (4, "4"), (3, "3"), (2, "2"), (1, "1"))


class ListForm(FileOrText):
    """A list as a file or as pasted text. The text stands in the form again after the preview, so that the same is imported."""

    too_large = _("The file is larger than 2 MB. Keep only the rows with GPUs.")

    name = LineField(label=_("Name"), max_length=80, help_text=_("a list of the same name is replaced"))
    provider = LineField(
        label=_("Provider"), max_length=60, required=False, help_text=_("where the list has no column for it")
    )
    currency = CurrencyField(label=_("Currency"), initial="USD")
    priced_on = forms.DateField(
        label=_("Prices of"),
        widget=forms.DateInput(format=DAY, attrs={"type": "date"}),
        input_formats=[DAY],
        help_text=_("the day on which the list was made; offers show its age"),
    )
    file = forms.FileField(
        label=_("File"), required=False, help_text=_("CSV in the columns of gpuhunt or SkyPilot, up to 2 MB")
    )
    csv = forms.CharField(
        label=_("or its text"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "input mono", "spellcheck": "false"}),
    )

    def clean_priced_on(self) -> Any:
        day = self.cleaned_data["priced_on"]
        if day > timezone.localdate():
            raise forms.ValidationError(_("This day is still to come. Give the day on which the list was made."))
        return day

    def sheet(self) -> Sheet:
        """Only of a valid form."""
        given = self.cleaned_data
        origin = given["file"].name if given.get("file") else given["name"]
        about = About(given["provider"], given["currency"] or "USD", given["priced_on"], str(origin)[:200])
        return read_sheet(given["csv"], about)


class RatingForm(forms.Form):
    provider = LineField(label=_("Provider"), max_length=60, widget=forms.TextInput(attrs={"list": "provider-names"}))
    stars = forms.TypedChoiceField(
        label=_("Support"), choices=STARS, coerce=int, help_text=_("5: quick and able; 1: nobody answers")
    )
    note = LineField(label=_("Note"), max_length=300, required=False)

    def clean_provider(self) -> str:
        """Offers know providers by their small letters."""
        return str(self.cleaned_data["provider"]).lower()
