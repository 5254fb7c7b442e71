"""What people type about whose money it is."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from fleet.costs.attribution.models import UNIX_NAME_LENGTH, AttributionRule, Reattribution, SplitMode
from fleet.costs.attribution.rules import RuleSaid
from fleet.inventory.machine_forms import MINUTES, MomentInput, PeopleForm
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team


class RuleForm(PeopleForm):
    """Conditions first, then what their machines get."""

    name_pattern = LineField(
        label=_("Name"), required=False, max_length=200, help_text=_("a pattern, as in train-*; empty for any name")
    )
    account = forms.ModelChoiceField(
        ProviderAccount.objects.none(), label=_("Account"), required=False, empty_label=_("any")
    )
    label_key = LineField(
        label=_("Label"), required=False, max_length=100, help_text=_("of ours or the provider's; empty for any")
    )
    label_value = LineField(
        label=_("with the value"), required=False, max_length=200, help_text=_("empty for any value")
    )
    split = forms.ChoiceField(label=_("Split"), choices=SplitMode.choices)

    field_order = ("name_pattern", "account", "label_key", "label_value", "project", "owner", "labels", "split")

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, team=team, **kwargs)
        self.fields["labels"].label = _("Labels to add")
        choice(self, "account").queryset = accounts_of(team)

    def said(self) -> RuleSaid:
        return RuleSaid(**{name: self.cleaned_data[name] for name in RuleSaid.__dataclass_fields__})

    @staticmethod
    def initial_of(rule: AttributionRule) -> dict[str, Any]:
        labels = ", ".join(f"{key}={value}" for key, value in rule.labels.items())
        plain = ("name_pattern", "label_key", "label_value", "split")
        chosen = {name: getattr(rule, f"{name}_id") for name in ("account", "project", "owner")}
        return {**{name: getattr(rule, name) for name in plain}, **chosen, "labels": labels}


class AgainForm(PeopleForm):
    """Hours of the past and who is to have them."""

    name_pattern = LineField(
        label=_("Machines"),
        required=False,
        max_length=200,
        help_text=_("a name, or a pattern as in train-*; those that are gone, too"),
    )
    rule = forms.ModelChoiceField(
        AttributionRule.objects.none(), label=_("or those of rule"), required=False, empty_label=_("none")
    )
    start = forms.DateTimeField(label=_("From"), widget=MomentInput(), input_formats=[MINUTES])
    until = forms.DateTimeField(
        label=_("Until"), widget=MomentInput(), input_formats=[MINUTES], help_text=_("full hours")
    )
    reason = LineField(
        label=_("Why"),
        max_length=Reattribution._meta.get_field("reason").max_length,
        help_text=_("it stays on record"),
    )

    field_order = ("name_pattern", "rule", "start", "until", "project", "owner", "reason")

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, team=team, **kwargs)
        del self.fields["labels"]
        self.team = team
        choice(self, "rule").queryset = AttributionRule.objects.filter(team=team, ended_at=None).order_by("order")
        choice(self, "project").queryset = Project.objects.filter(team=team).order_by("name")

    def clean(self) -> dict[str, Any] | None:
        if not self.errors and bool(self.cleaned_data["rule"]) == bool(self.cleaned_data["name_pattern"]):
            raise ValidationError({"name_pattern": _("Name machines or choose a rule, one of the two.")})
        return super().clean()

    def asked(self) -> dict[str, Any]:
        """For reattribute and what comes before it."""
        names = ("start", "until", "project", "owner", "reason", "rule")
        return {**{name: self.cleaned_data[name] for name in names}, "instances": self._instances()}

    def _instances(self) -> list[int]:
        pattern = self.cleaned_data["name_pattern"].lower()
        rows = Instance.objects.filter(team=self.team).values_list("pk", "name") if pattern else ()
        return [pk for pk, name in rows if fnmatchcase(name.lower(), pattern)]


class UnixUserForm(PeopleForm):
    name = LineField(label=_("User on the machine"), max_length=UNIX_NAME_LENGTH, help_text=_("as in ada, or a number"))
    instance = forms.ModelChoiceField(
        Instance.objects.none(), label=_("On"), required=False, empty_label=_("all machines")
    )

    field_order = ("name", "instance", "owner", "project")

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, team=team, **kwargs)
        del self.fields["labels"]
        choice(self, "instance").queryset = Instance.objects.filter(team=team, gone_at=None).order_by("name")

    def asked(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.field_order}


class SplitForm(forms.Form):
    split = forms.ChoiceField(
        label=_("Split"), required=False, choices=[("", _("as its rule says")), *SplitMode.choices]
    )


def choice(form: forms.Form, name: str) -> forms.ModelChoiceField[Any]:
    field = form.fields[name]
    assert isinstance(field, forms.ModelChoiceField)
    return field


def accounts_of(team: Team) -> Any:
    return ProviderAccount.objects.filter(team=team, disconnected_at=None).defer("credentials").order_by("name")
