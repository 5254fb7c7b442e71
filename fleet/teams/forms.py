"""What people type on the pages of this slice."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class TeamNameForm(forms.Form):
    name = forms.CharField(label=_("Name"), min_length=2, max_length=80)


class TeamForm(TeamNameForm):
    currency = forms.RegexField(
        r"^[A-Z]{3}$",
        label=_("Currency"),
        help_text=_("three letters, as in USD, EUR or CNY; totals are shown in it"),
        error_messages={"invalid": _("Write the three capital letters of a currency, for example USD.")},
    )
