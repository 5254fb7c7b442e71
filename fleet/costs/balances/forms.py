"""What people type about balances."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.costs.balances.models import URGENT_HOURS, WARNING_HOURS
from fleet.inventory.adapters import can
from fleet.inventory.machine_forms import MINUTES, MomentInput
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Capability
from fleet.teams.fields import LineField
from fleet.teams.models import Team


class AccountChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


def accounts_of(team: Team) -> Any:
    return ProviderAccount.objects.filter(team=team, disconnected_at=None).order_by("name")


class TypedBalanceForm(forms.Form):
    """What is left at an account whose provider does not tell it."""

    account = AccountChoice(ProviderAccount.objects.none(), label=_("Account"))
    amount = forms.DecimalField(label=_("Left"), max_digits=20, decimal_places=6)
    currency = LineField(label=_("Currency"), max_length=3)
    at = forms.DateTimeField(
        label=_("At"),
        widget=MomentInput(),
        input_formats=[MINUTES],
        help_text=_("counted down by the ledger from then on"),
    )

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        silent = [row.pk for row in accounts_of(team).only("kind") if not can(row, Capability.BALANCE)]
        field = self.fields["account"]
        assert isinstance(field, AccountChoice)
        field.queryset = accounts_of(team).filter(pk__in=silent)

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()


class LimitsForm(forms.Form):
    """When somebody is told that a balance does not last."""

    account = AccountChoice(
        ProviderAccount.objects.none(), label=_("Of"), required=False, empty_label=_("all without their own")
    )
    warning_hours = forms.IntegerField(label=_("Warning, hours before"), min_value=1, initial=WARNING_HOURS)
    urgent_hours = forms.IntegerField(label=_("Urgent, hours before"), min_value=0, initial=URGENT_HOURS)

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["account"]
        assert isinstance(field, AccountChoice)
        field.queryset = accounts_of(team)
