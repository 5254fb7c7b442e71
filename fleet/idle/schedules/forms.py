"""What people type about schedules."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.idle.policies.places import countries
from fleet.idle.schedules.manage import ScheduleSaid
from fleet.idle.schedules.models import PowerSchedule
from fleet.inventory.models import Instance
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team

ZONES = [*sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/")), "UTC"]


class ClockInput(forms.TimeInput):
    input_type = "time"

    def __init__(self) -> None:
        super().__init__(format="%H:%M")


class Machines(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class Named(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's class takes none at run time
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class ScheduleForm(forms.Form):
    """`said()` is what save_schedule takes."""

    name = LineField(label=_("Name"), max_length=80, help_text=_("messages tell of it by this name"))
    enabled = forms.BooleanField(label=_("Switched on"), required=False)
    machines = Machines(
        Instance.objects.none(), label=_("These machines"), required=False, help_text=_("or all of a project, or with a label")
    )  # fmt: skip
    project = Named(Project.objects.none(), label=_("All of a project"), required=False, empty_label=_("none"))
    label_name = LineField(label=_("With the label"), max_length=80, required=False, help_text=_("ours or the provider's"))  # fmt: skip
    label_value = LineField(label=_("and its value"), max_length=200, required=False, help_text=_("empty: any value"))
    days = forms.TypedMultipleChoiceField(
        label=_("On"), required=False, coerce=int, widget=forms.CheckboxSelectMultiple
    )  # fmt: skip
    start_at = forms.TimeField(label=_("Start them at"), required=False, widget=ClockInput(), help_text=_("empty: people start them"))  # fmt: skip
    stop_at = forms.TimeField(
        label=_("Stop them at"), required=False, widget=ClockInput(), help_text=_("earlier than the start: on the next day")
    )  # fmt: skip
    notice_minutes = forms.IntegerField(
        label=_("Tell owners so many minutes before a stop"), min_value=0, max_value=1440,
        help_text=_("nothing is stopped before they were told"),
    )  # fmt: skip
    holidays = forms.ChoiceField(label=_("Start nothing on holidays of"), required=False)
    holidays_region = LineField(label=_("and its region"), max_length=8, required=False, help_text=_("as in BY, for Bavaria"))  # fmt: skip
    time_zone = LineField(
        label=_("Time zone"), max_length=64, required=False, widget=forms.TextInput(attrs={"list": "zones"})
    )
    accept_loss = forms.BooleanField(
        label=_("Also where a stop loses data"), required=False,
        help_text=_("without it, machines that would lose their disk are told of as failed and go on running"),
    )  # fmt: skip

    def __init__(self, data: Any = None, *, team: Team, schedule: PowerSchedule | None = None) -> None:
        super().__init__(data, initial=initial_of(schedule))
        machines, project = self.fields["machines"], self.fields["project"]
        assert isinstance(machines, forms.ModelMultipleChoiceField)
        assert isinstance(project, forms.ModelChoiceField)
        kept = list(schedule.machines.values_list("pk", flat=True)) if schedule else []
        there = Instance.objects.filter(team=team, gone_at=None, managed=True)
        machines.queryset = (there | Instance.objects.filter(team=team, pk__in=kept)).order_by("name", "pk")
        project.queryset = Project.objects.filter(team=team, archived_at=None).order_by("name")
        self.fields["time_zone"].help_text = gettext("empty: the team's, %(zone)s") % {"zone": team.time_zone}
        self.fields["days"].choices = list(WEEKDAYS_ABBR.items())  # type: ignore[attr-defined]  # both are choice fields
        self.fields["holidays"].choices = [("", gettext("none")), *countries()]  # type: ignore[attr-defined]  # as above

    def said(self) -> ScheduleSaid:
        typed = dict(self.cleaned_data)
        place = "-".join(filter(None, (typed.pop("holidays"), typed.pop("holidays_region"))))
        machines = frozenset(machine.pk for machine in typed.pop("machines"))
        return ScheduleSaid(**{**typed, "days": tuple(typed["days"])}, holidays=place, machines=machines)

    def add_refusal(self, refusal: forms.ValidationError) -> None:
        """What the use-case refuses, at its fields."""
        for name, texts in refusal.message_dict.items():
            for text in texts:
                self.add_error(name if name in self.fields else None, text)


def initial_of(schedule: PowerSchedule | None) -> dict[str, Any]:
    said = ScheduleSaid.of(schedule) if schedule else ScheduleSaid(name="")
    country, _hyphen, region = said.holidays.partition("-")
    return {
        **said.columns(),
        "project": said.project and said.project.pk,
        "machines": list(said.machines),
        "holidays": country,
        "holidays_region": region,
    }
