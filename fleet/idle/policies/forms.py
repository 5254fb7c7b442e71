"""What people type about policies, and about how one machine is used."""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.db.models import Q
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom, MachineUse, UseMode
from fleet.idle.policies.places import countries
from fleet.idle.policies.said import PolicySaid
from fleet.idle.policies.shown import rented
from fleet.idle.policies.thresholds import BY_NAME, THRESHOLDS, Threshold
from fleet.inventory.machine_forms import moment_field
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.words import TENANCIES, choices
from fleet.providers.registry import adapters
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team

MINUTES = re.compile(r"[\s,;]+")
NO_CHOICE = ("", _("all"))
# What is typed elsewhere than in the column of its name.
OWN_FIELDS = frozenset({"excluded", "limits", "holidays"})


class MinutesField(LineField):
    """As in "30, 10"; a list of whole numbers."""

    def to_python(self, value: Any) -> Any:
        words = [word for word in MINUTES.split(super().to_python(value)) if word]
        if not all(word.isascii() and word.isdigit() and len(word) <= 5 for word in words):
            raise forms.ValidationError(gettext("Write whole minutes with commas between them, as in 30, 10."))
        return [int(word) for word in words]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


class ThresholdField(forms.FloatField):
    """In the unit that people read; its bounds are said in it, too. Empty: the default."""

    def __init__(self, threshold: Threshold) -> None:
        low, high, default = (f"{threshold.typed(value):g}" for value in (threshold.low, threshold.high, threshold.default))  # fmt: skip
        super().__init__(
            label=f"{threshold.label} ({threshold.unit})",
            required=False,
            min_value=threshold.typed(threshold.low),
            max_value=threshold.typed(threshold.high),
            help_text=gettext("from %(low)s to %(high)s; empty: %(default)s")
            % {"low": low, "high": high, "default": default},
            widget=forms.NumberInput(attrs={"placeholder": default, "step": "any"}),
        )


class ClockInput(forms.TimeInput):
    input_type = "time"

    def __init__(self) -> None:
        super().__init__(format="%H:%M")


class Named(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class NamedSeveral(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class PolicyForm(forms.Form):
    """`said()` is what save_policy takes; `limit_…` are thresholds, as in thresholds.py."""

    name = LineField(label=_("Name"), max_length=80, help_text=_("warnings tell of it by this name"))
    enabled = forms.BooleanField(label=_("Switched on"), required=False)
    project = Named(Project.objects.none(), label=_("Of a project"), required=False, empty_label=_("all"))
    account = Named(ProviderAccount.objects.none(), label=_("Of an account"), required=False, empty_label=_("all"))
    provider = forms.ChoiceField(label=_("At a provider"), required=False)
    tenancy = forms.ChoiceField(label=_("Shared with others"), required=False)
    label_name = LineField(label=_("With the label"), max_length=80, required=False, help_text=_("ours or the provider's"))  # fmt: skip
    label_value = LineField(label=_("and its value"), max_length=200, required=False, help_text=_("empty: any value"))
    excluded = NamedSeveral(
        Instance.objects.none(), label=_("Except"), required=False, help_text=_("the next policy that covers them counts")
    )  # fmt: skip
    mode = forms.ChoiceField(
        label=_("Used as"), choices=UseMode.choices, help_text=_("a machine's own page may say otherwise")
    )
    window_minutes = forms.IntegerField(
        label=_("Idle for, in minutes"), min_value=5, max_value=10_080, help_text=_("5 or more")
    )
    window_from = forms.ChoiceField(
        label=_("This time is"), choices=IdleWindowFrom.choices,
        help_text=_("history recommends it from your own machines; until it can, nothing is stopped"),
    )  # fmt: skip
    restart_minutes = forms.IntegerField(
        label=_("A start until work goes on, in minutes"), min_value=1, max_value=1440,
        help_text=_("what a wrong stop costs, times the GPUs"),
    )  # fmt: skip
    wrong_stop_gpu_hours = forms.FloatField(
        label=_("or what a wrong stop costs, in GPU-hours"), min_value=0, max_value=10_000, required=False,
        help_text=_("empty: from the start's minutes"),
    )  # fmt: skip
    action = forms.ChoiceField(label=_("Then"), choices=IdleAction.choices, widget=forms.RadioSelect)
    grace_minutes = forms.IntegerField(
        label=_("After the warning it goes on for, in minutes"), min_value=5, max_value=10_080,
        help_text=_("counted from when a channel took the warning; without one, no stop"),
    )  # fmt: skip
    warn_minutes = MinutesField(
        label=_("Remind again, minutes before"), max_length=60, required=False, help_text=_("as in 10, 5; empty: not")
    )
    hook_minutes = forms.IntegerField(
        label=_("Time for the machine's own preparation, in minutes"), min_value=1, max_value=60,
        help_text=_("checkpoint and copy, where the machine has a script for it"),
    )  # fmt: skip
    accept_loss = forms.BooleanField(
        label=_("Also where that loses data"), required=False,
        help_text=_("without it, machines that would lose their disk are only told of"),
    )  # fmt: skip
    stop_without_hook = forms.BooleanField(
        label=_("Also where the machine's own preparation fails"), required=False,
        help_text=_("without it, a machine whose script fails or takes too long goes on running"),
    )  # fmt: skip
    confirmed = forms.BooleanField(label=_("I have read what it does, and it may do it by itself"), required=False)
    office_days = forms.TypedMultipleChoiceField(
        label=_("Office days"), required=False, coerce=int, widget=forms.CheckboxSelectMultiple
    )
    office_from = forms.TimeField(label=_("From"), required=False, widget=ClockInput())
    office_until = forms.TimeField(
        label=_("Until"), required=False, widget=ClockInput(), help_text=_("earlier than the beginning: on the next day")
    )  # fmt: skip
    time_zone = LineField(
        label=_("Time zone"), max_length=64, required=False, widget=forms.TextInput(attrs={"list": "zones"})
    )
    holidays = forms.ChoiceField(
        label=_("Holidays of"), required=False, help_text=_("days that are worked instead, as in China, are office days")
    )  # fmt: skip
    holidays_region = LineField(label=_("and its region"), max_length=8, required=False, help_text=_("as in BY, for Bavaria"))  # fmt: skip
    max_age_hours = forms.IntegerField(
        label=_("Runs at most, in hours"), min_value=1, max_value=8784, required=False,
        help_text=_("then its end is planned and told, unless a person gives it longer; empty: no limit"),
    )  # fmt: skip
    delete_after_days = forms.IntegerField(
        label=_("Delete so many days after a stop"), min_value=1, max_value=366, required=False, help_text=_("empty: never")
    )  # fmt: skip
    delete_consent = forms.BooleanField(label=_("I agree that they are deleted, disks and all"), required=False)

    def __init__(self, data: Any = None, *, team: Team, policy: IdlePolicy | None = None) -> None:
        super().__init__(data, initial=initial_of(policy))
        self._choose("project", Project.objects.filter(team=team), "archived_at", policy.project_id if policy else None)
        accounts = ProviderAccount.objects.filter(team=team).defer("credentials")
        self._choose("account", accounts, "disconnected_at", policy.account_id if policy else None)
        excluded, zone = self.fields["excluded"], self.fields["time_zone"]
        assert isinstance(excluded, forms.ModelMultipleChoiceField)
        kept = policy.excluded.values("pk") if policy else []
        excluded.queryset = Instance.objects.filter(team=team).filter(_there(team, kept)).order_by("name", "pk")
        zone.help_text = gettext("empty: the team's, %(zone)s") % {"zone": team.time_zone}
        for name, offered in CHOICES.items():
            self.fields[name].choices = offered()  # type: ignore[attr-defined]  # all of them are choice fields
        for threshold in THRESHOLDS:
            self.fields[f"limit_{threshold.name}"] = ThresholdField(threshold)

    def _choose(self, name: str, rows: Any, ended: str, kept: int | None) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = (rows.filter(**{ended: None}) | rows.filter(pk=kept)).order_by("name")

    def clean(self) -> dict[str, Any] | None:
        if self.cleaned_data.get("holidays_region") and not self.cleaned_data.get("holidays"):
            self.add_error("holidays", gettext("Choose the country of this region."))
        return super().clean()

    def said(self) -> PolicySaid:
        typed = self.cleaned_data
        plain = {name: typed[name] for name in PolicySaid.__slots__ if name not in OWN_FIELDS}
        plain |= {name: tuple(plain[name]) for name in ("warn_minutes", "office_days")}
        place = "-".join(filter(None, (typed["holidays"], typed["holidays_region"])))
        excluded = frozenset(machine.pk for machine in typed["excluded"])
        return PolicySaid(**plain, holidays=place, excluded=excluded, limits=self._limits())

    def _limits(self) -> dict[str, float]:
        typed = {name: self.cleaned_data[f"limit_{name}"] for name in BY_NAME}
        return {name: BY_NAME[name].kept(value) for name, value in typed.items() if value is not None}

    def add_refusal(self, refusal: forms.ValidationError) -> None:
        """What the use-case refuses, at its fields; what has no field here stands above the form."""
        if not hasattr(refusal, "error_dict"):
            self.add_error(None, refusal)
            return
        # The country is chosen out of those that are known.
        own = {"holidays": "holidays_region"} if self.cleaned_data["holidays_region"] else {}
        for name, texts in refusal.message_dict.items():
            for text in texts:
                self.add_error(own.get(name, name) if name in self.fields else None, text)

    @property
    def thresholds(self) -> list[forms.BoundField]:
        return [self[f"limit_{threshold.name}"] for threshold in THRESHOLDS]

    @property
    def shows_thresholds(self) -> bool:
        """Whether one of them is set or wrong, so that they must not be folded away."""
        return any(field.value() not in (None, "") or field.errors for field in self.thresholds)


def initial_of(policy: IdlePolicy | None) -> dict[str, Any]:
    said = PolicySaid.of(policy) if policy else PolicySaid(name="")
    country, _hyphen, region = said.holidays.partition("-")
    plain = {name: getattr(said, name) for name in PolicySaid.__slots__ if name not in OWN_FIELDS}
    limits = {f"limit_{name}": f"{BY_NAME[name].typed(value):g}" for name, value in said.limits.items()}
    return {
        **plain,
        **limits,
        "project": said.project and said.project.pk,
        "account": said.account and said.account.pk,
        "excluded": list(said.excluded),
        "holidays": country,
        "holidays_region": region,
        "delete_consent": bool(policy and policy.delete_consent_at),
    }


class UseForm(forms.Form):
    mode = forms.ChoiceField(label=_("Used as"), required=False)
    lease_until = moment_field(_("May run until"), _("then its end is planned and told; empty: no end"))

    def __init__(self, data: Any = None, *, use: MachineUse | None, policy_mode: str) -> None:
        super().__init__(data, initial={"mode": use.mode, "lease_until": use.lease_until} if use else None)
        mode = self.fields["mode"]
        assert isinstance(mode, forms.ChoiceField)
        own = gettext("as its policy says (%(mode)s)") % {"mode": UseMode(policy_mode).label}
        mode.choices = [("", own), *UseMode.choices]


def _there(team: Team, kept: Any) -> Any:
    return Q(pk__in=rented(team).values("pk")) | Q(pk__in=kept)


CHOICES: dict[str, Any] = {
    "provider": lambda: [NO_CHOICE, *((kind, adapter.label) for kind, adapter in adapters().items())],
    "tenancy": lambda: [NO_CHOICE, *choices(TENANCIES)],
    "holidays": lambda: [("", _("nowhere: every week is the same")), *countries()],
    "office_days": lambda: list(WEEKDAYS_ABBR.items()),
}
ZONES = sorted(available_timezones())
