"""What people type to plan an act by hand."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.inventory.machine_forms import moment_field
from fleet.inventory.models import Instance
from fleet.inventory.plans.models import PlannedActionVerb
from fleet.teams.fields import LineField
from fleet.teams.models import Team


class Machine(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class PlanForm(forms.Form):
    instance = Machine(Instance.objects.none(), label=_("Machine"), empty_label=_("choose"))
    verb = forms.TypedChoiceField(label=_("What"), choices=PlannedActionVerb.choices, coerce=PlannedActionVerb)
    due_at = moment_field(_("When"), _("its owner has half an hour from when they were told"))
    reason = LineField(label=_("Why"), max_length=300, help_text=_("its owner reads it"))
    accept_loss = forms.BooleanField(label=_("Data that this destroys may go"), required=False)

    def __init__(self, data: Any = None, *, team: Team) -> None:
        super().__init__(data)
        machines = self.fields["instance"]
        assert isinstance(machines, forms.ModelChoiceField)
        there = Instance.objects.filter(team=team, gone_at=None, managed=True)
        machines.queryset = there.select_related("account", "team").order_by("name", "pk")
        self.fields["due_at"].required = True

    def add_refusal(self, refusal: forms.ValidationError) -> None:
        for name, texts in refusal.message_dict.items():
            for text in texts:
                self.add_error(name, text)
