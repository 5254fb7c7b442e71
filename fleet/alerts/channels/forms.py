"""What people type about channels; the fields of each kind are its sender's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from fleet.alerts.causes import all_causes
from fleet.alerts.channels.manage import RouteWords
from fleet.alerts.channels.models import Channel, Digest, Route
from fleet.alerts.channels.routing import ZONES
from fleet.alerts.channels.senders.base import Field, Sender
from fleet.alerts.models import Severity
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team

NAME_LENGTH = 80


class ChannelForm(forms.Form):
    """`channel`: one that is there already; its secrets are not shown, and left empty they stay."""

    name = LineField(label=_("Name"), max_length=NAME_LENGTH)

    def __init__(self, data: Any, *, sender: Sender, channel: Channel | None = None, may_share: bool = True) -> None:
        initial = {"name": channel.name, "enabled": channel.enabled, **channel.options} if channel else {}
        super().__init__(data, initial=initial)
        self.sender = sender
        for one in sender.fields:
            self.fields[one.name] = _form_field(one, known=channel is not None)
        if channel is not None:
            self.fields["enabled"] = forms.BooleanField(label=_("Send through it"), required=False)
        elif may_share:
            words = _("nobody else of the team sees it; it ends when you leave")
            self.fields["own"] = forms.BooleanField(label=_("Only for me"), required=False, help_text=words)

    def typed(self) -> dict[str, str]:
        return {one.name: str(self.cleaned_data.get(one.name) or "") for one in self.sender.fields}


class RouteForm(forms.Form):
    severities = forms.MultipleChoiceField(
        label=_("Severities"), choices=Severity.choices, required=False, widget=forms.CheckboxSelectMultiple,
        help_text=_("none chosen: all of them"),
    )  # fmt: skip
    causes = forms.MultipleChoiceField(
        label=_("Kinds of trouble"), required=False, widget=forms.CheckboxSelectMultiple, help_text=_("none chosen: all")
    )  # fmt: skip
    projects = forms.ModelMultipleChoiceField(
        label=_("Projects"), queryset=Project.objects.none(), required=False, help_text=_("none chosen: all")
    )
    only_escalated = forms.BooleanField(label=_("Only what somebody escalated"), required=False)
    only_mine = forms.BooleanField(
        label=_("Only my machines"), required=False, help_text=_("those whose owner you are, and outages that they are part of")
    )  # fmt: skip
    digest = forms.ChoiceField(label=_("How often"), choices=Digest.choices, initial=Digest.NONE)
    quiet_from = forms.TimeField(
        label=_("Quiet from"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    quiet_until = forms.TimeField(
        label=_("Quiet until"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    urgent_breaks_quiet = forms.BooleanField(label=_("Urgent alerts break the quiet"), required=False, initial=True)
    language = forms.ChoiceField(label=_("Language"), required=False)
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)

    def __init__(self, data: Any, *, team: Team, route: Route | None = None, is_own: bool = True) -> None:
        super().__init__(data, initial=_initial(route) if route else None)
        if not is_own:
            del self.fields["only_mine"]
        choices: dict[str, list[tuple[Any, Any]]] = {
            "causes": _causes(route.causes if route else ()),
            "language": [("", _("the reader's")), *settings.LANGUAGES],
            "time_zone": [("", _("the reader's, else UTC")), *((zone, zone) for zone in sorted(ZONES))],
        }
        for name, values in choices.items():
            self.fields[name].choices = values  # type: ignore[attr-defined]  # a choice field
        projects = Project.objects.filter(team=team, archived_at=None)
        if projects.exists():
            self.fields["projects"].queryset = projects  # type: ignore[attr-defined]  # of models
        else:
            # A box without choices says nothing.
            del self.fields["projects"]

    def words(self) -> RouteWords:
        return RouteWords(**self.cleaned_data)


def _causes(chosen: Iterable[str]) -> list[tuple[str, Any]]:
    """With the families that scripts have chosen, so that saving the page does not drop them."""
    known = [(cause.name, cause.title) for cause in all_causes()]
    names = {name for name, _title in known}
    families = [(name, _("all of %(family)s") % {"family": name}) for name in chosen if name not in names]
    return [*families, *known]


def _initial(route: Route) -> dict[str, Any]:
    names = ("severities", "causes", "only_escalated", "only_mine", "digest", "quiet_from", "quiet_until", "urgent_breaks_quiet", "language", "time_zone")  # fmt: skip
    return {**{name: getattr(route, name) for name in names}, "projects": list(route.projects.all())}


def _form_field(one: Field, *, known: bool) -> forms.Field:
    if one.secret:
        kept = _("empty: it stays as it is") if known else one.help
        widget = forms.PasswordInput(attrs={"autocomplete": "off"})
        return LineField(label=str(one.label), help_text=str(kept), max_length=one.max_length, required=one.required and not known, widget=widget)  # fmt: skip
    return LineField(label=str(one.label), help_text=str(one.help), max_length=one.max_length, required=one.required, initial=one.default)  # fmt: skip
