"""What people type about budgets."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.costs.budgets.manage import BudgetWords
from fleet.costs.budgets.models import Budget, BudgetPeriod
from fleet.inventory.models import ProviderAccount
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team, User

PERCENTS = re.compile(r"[\s,;%]+")


class PercentsField(LineField):
    """As in "50, 80, 100"; a list of whole numbers."""

    def to_python(self, value: Any) -> Any:
        words = [word for word in PERCENTS.split(super().to_python(value)) if word]
        if not all(word.isascii() and word.isdigit() and len(word) <= 4 for word in words):
            raise forms.ValidationError(gettext("Write whole percents with commas between them, as in 50, 80, 100."))
        return [int(word) for word in words]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list) else value


class DayInput(forms.DateInput):
    input_type = "date"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%d")


class Named(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.display_name if isinstance(obj, User) else obj.name)


class BudgetForm(forms.Form):
    """`words()` is what the use-cases take."""

    amount = forms.DecimalField(label=_("Amount"), max_digits=14, decimal_places=2)
    currency = LineField(label=_("Currency"), max_length=3)
    project = Named(Project.objects.none(), label=_("Of a project"), required=False, empty_label=_("all"))
    owner = Named(User.objects.none(), label=_("Of a person"), required=False, empty_label=_("all"))
    account = Named(ProviderAccount.objects.none(), label=_("Of an account"), required=False, empty_label=_("all"))
    name = LineField(label=_("Name"), max_length=80, required=False, help_text=_("empty: the name of whose it is"))
    period = forms.ChoiceField(label=_("Period"), choices=BudgetPeriod.choices)
    starts_on = forms.DateField(label=_("First day"), required=False, widget=DayInput())
    ends_on = forms.DateField(
        label=_("Over on"), required=False, widget=DayInput(), help_text=_("the day after the last")
    )
    actual_thresholds = PercentsField(
        label=_("Tell at, percent spent"), max_length=60, required=False, help_text=_("as in 50, 80, 100")
    )
    forecast_thresholds = PercentsField(
        label=_("Tell when it is heading for, percent"),
        max_length=60,
        required=False,
        help_text=_("as in 100; empty: never"),
    )
    hard = forms.BooleanField(
        label=_("Hard: once it is spent, launch and start nothing more"),
        required=False,
        help_text=_("an admin may give a reason why it does not count"),
    )
    stops = forms.BooleanField(
        label=_("And plan stops of its machines"),
        required=False,
        help_text=_("told to owners, and carried out after the notice; a hold puts a stop off"),
    )
    notice_hours = forms.IntegerField(label=_("Notice to owners, in hours"), min_value=1, max_value=720, initial=24)

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose("project", Project.objects.filter(team=team, archived_at=None).order_by("name"))
        self._choose("owner", User.objects.filter(memberships__team=team).order_by("username"))
        self._choose("account", ProviderAccount.objects.filter(team=team, disconnected_at=None).order_by("name"))

    def _choose(self, name: str, rows: Any) -> None:
        field = self.fields[name]
        assert isinstance(field, Named)
        field.queryset = rows

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    @staticmethod
    def initial_of(team: Team, budget: Budget | None = None) -> dict[str, Any]:
        if budget is None:
            return {
                "currency": team.currency,
                "period": BudgetPeriod.MONTH,
                "actual_thresholds": [50, 80, 100],
                "forecast_thresholds": [100],
            }
        return {name: getattr(budget, name) for name in BudgetForm.base_fields}

    def words(self) -> BudgetWords:
        return BudgetWords(**self.cleaned_data)
