"""What people type about alerts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.alerts.escalation import MOST_MINUTES, reachable_members
from fleet.alerts.models import EscalationPolicy
from fleet.inventory.machine_forms import MINUTES, MomentInput
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.fields import LineField
from fleet.teams.models import Team, User


class NamedChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    """Rows by their own names."""

    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class PersonChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.display_name)


class EscalationForm(forms.Form):
    """When urgent alerts that nobody answers escalate by themselves, and to whom."""

    after_minutes = forms.IntegerField(
        label=_("After so many minutes without an answer"),
        required=False,
        min_value=1,
        max_value=MOST_MINUTES,
        help_text=_("empty: they do not escalate by themselves"),
    )
    person = PersonChoice(
        User.objects.none(), label=_("To"), required=False, empty_label=_("whoever stands behind the first readers"),
        help_text=_("members who have a channel of their own"),
    )  # fmt: skip

    def __init__(self, data: Any, *, policy: EscalationPolicy) -> None:
        super().__init__(data, initial={"after_minutes": policy.after_minutes, "person": policy.person})
        person = self.fields["person"]
        assert isinstance(person, PersonChoice)
        person.queryset = reachable_members(policy.team)


class WindowForm(forms.Form):
    """Of a machine, of a provider account, or of everything. Times are in the reader's zone."""

    instance = NamedChoice(Instance.objects.none(), label=_("Machine"), required=False)
    account = NamedChoice(ProviderAccount.objects.none(), label=_("Provider account"), required=False)
    starts_at = forms.DateTimeField(label=_("From"), widget=MomentInput(), input_formats=[MINUTES])
    ends_at = forms.DateTimeField(label=_("Until"), widget=MomentInput(), input_formats=[MINUTES])
    reason = LineField(
        label=_("Reason"), required=False, max_length=200, help_text=_("as colleagues read it, for example “driver 580”")
    )  # fmt: skip

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        instance, account = self.fields["instance"], self.fields["account"]
        assert isinstance(instance, NamedChoice)
        assert isinstance(account, NamedChoice)
        instance.queryset = Instance.objects.filter(team=team, gone_at=None).order_by("name")
        instance.empty_label = account.empty_label = _("all")
        account.queryset = ProviderAccount.objects.filter(team=team, disconnected_at=None).order_by("name")

    @staticmethod
    def initial_at(now: datetime, query: Mapping[str, str]) -> dict[str, Any]:
        """Two hours from the next full one; `instance` of the address is chosen."""
        start = timezone.localtime(now).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return {"starts_at": start, "ends_at": start + timedelta(hours=2), "instance": query.get("instance", "")}

    def asked(self) -> dict[str, Any]:
        """For add_window."""
        return {name: self.cleaned_data[name] for name in ("instance", "account", "starts_at", "ends_at", "reason")}
