"""What people type of charges."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.alerts.forms import NamedChoice
from fleet.costs.charges.charges import NewCharge
from fleet.costs.charges.words import KINDS, UNITS
from fleet.inventory.machine_forms import MINUTES, MomentInput
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.words import choices
from fleet.teams.fields import LineField
from fleet.teams.models import Team


class ChargeForm(forms.Form):
    """Times are in the reader's zone."""

    account = NamedChoice(ProviderAccount.objects.none(), label=_("Provider account"))
    instance = NamedChoice(
        Instance.objects.none(), label=_("Machine"), required=False, help_text=_("whose it is; empty: of the account")
    )
    kind = forms.ChoiceField(label=_("What is charged"), choices=choices(KINDS))
    name = LineField(label=_("Name"), max_length=120, help_text=_("as the bill names it, for example “vol-data”"))
    price = forms.DecimalField(label=_("Price"), min_value=0, max_digits=16, decimal_places=6)
    unit = forms.ChoiceField(label=_("The price is for"), choices=choices(UNITS))
    quantity = forms.DecimalField(
        label=_("Quantity"),
        min_value=0,
        max_digits=14,
        decimal_places=3,
        required=False,
        help_text=_("GB, if priced by them; else how many. Empty: 1"),
    )
    currency = forms.RegexField(
        label=_("Currency"),
        regex=r"^[A-Z]{3}$",
        error_messages={"invalid": _("Give the three letters of a currency, as USD.")},
    )
    starts_at = forms.DateTimeField(label=_("From"), widget=MomentInput(), input_formats=[MINUTES])
    ends_at = forms.DateTimeField(
        label=_("Until"),
        widget=MomentInput(),
        input_formats=[MINUTES],
        required=False,
        help_text=_("empty: it goes on; what is charged once is spread until then"),
    )
    note = LineField(label=_("Note"), required=False, max_length=300)

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        account, instance = self.fields["account"], self.fields["instance"]
        assert isinstance(account, NamedChoice)
        assert isinstance(instance, NamedChoice)
        account.empty_label, instance.empty_label = _("choose one"), _("none")
        account.queryset = ProviderAccount.objects.filter(team=team).order_by("name")
        instance.queryset = Instance.objects.filter(team=team).order_by("name")

    def clean_quantity(self) -> object:
        quantity = self.cleaned_data["quantity"]
        if quantity == 0:
            raise forms.ValidationError(_("Give more than 0."))
        return quantity or 1

    def asked(self) -> dict[str, Any]:
        """For add_charge."""
        values = dict(self.cleaned_data)
        return {"account": values.pop("account"), "instance": values.pop("instance"), "typed": NewCharge(**values)}


class EndForm(forms.Form):
    ends_at = forms.DateTimeField(label=_("Until"), widget=MomentInput(), input_formats=[MINUTES])


class RemoveForm(forms.Form):
    reason = LineField(label=_("Why it was wrong"), max_length=300)
