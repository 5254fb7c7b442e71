"""What people type on the pages of this slice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils.translation import gettext_lazy as _

from fleet.teams.fields import LineField
from fleet.teams.models import Role, Scope


class NameForm(forms.Form):
    name = LineField(label=_("Name"), min_length=2, max_length=80)


class ZoneField(forms.CharField):
    """The name of a time zone; the page has the list of them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            label=_("Time zone"), widget=forms.TextInput({"list": "zones", "autocomplete": "off"}), **kwargs
        )

    def clean(self, value: Any) -> str:
        zone: str = super().clean(value)
        if zone and zone not in available_timezones():
            raise forms.ValidationError(
                _("No time zone has this name. Write it as region/city, for example Europe/Berlin.")
            )
        return zone


class TeamForm(NameForm):
    currency = forms.RegexField(
        r"^[A-Z]{3}$",
        label=_("Currency"),
        help_text=_("three letters, as in USD, EUR or CNY; totals are shown in it"),
        error_messages={"invalid": _("Write the three capital letters of a currency, for example USD.")},
    )
    time_zone = ZoneField(help_text=_("in which days and months of costs begin; after a change they are summed again"))


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)

    def role_given(self) -> Role:
        return Role(self.cleaned_data["role"])


class InvitationForm(RoleForm):
    role = forms.ChoiceField(
        label=_("Role"),
        choices=Role.choices,
        help_text=_("viewers look, operators also start and stop machines, admins also manage people, money and keys"),
    )
    email = forms.EmailField(label=_("For"), required=False, help_text=_("an e-mail address, as a note to yourselves"))


class RegistrationForm(forms.Form):
    """A new person's account; the passwords that Django's validators refuse are refused by the use-case."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput({"autocomplete": "username"}),
    )
    email = forms.EmailField(label=_("E-mail"), required=False, widget=forms.EmailInput({"autocomplete": "email"}))
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        help_text=_("at least 8 characters, none of the usual ones"),
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


class TokenForm(NameForm):
    scope = forms.ChoiceField(
        label=_("It may"), choices=Scope.choices, help_text=_("read, operate like an operator, or manage like an admin")
    )
    expires = forms.TypedChoiceField(
        label=_("Expires"),
        coerce=int,
        initial=90,
        choices=[(30, _("in 30 days")), (90, _("in 90 days")), (365, _("in a year")), (0, _("never"))],
    )

    def lifetime(self) -> timedelta | None:
        days = self.cleaned_data["expires"]
        return timedelta(days=days) if days else None


class ProfileForm(forms.Form):
    username = forms.CharField(label=_("User name"), max_length=150, validators=[UnicodeUsernameValidator()])
    name = LineField(label=_("Name"), max_length=150, required=False, help_text=_("as colleagues see it"))
    email = forms.EmailField(label=_("E-mail"), required=False, help_text=_("you can sign in with it, too"))
    language = forms.ChoiceField(
        label=_("Language"), required=False, choices=[("", _("as the browser asks")), *settings.LANGUAGES]
    )
    time_zone = ZoneField(required=False, help_text=_("for example Asia/Shanghai; empty follows the browser"))
    shows_sandbox = forms.BooleanField(label=_("Show the sandbox fleet"), required=False)


class PasswordForm(forms.Form):
    old = forms.CharField(
        label=_("Present password"),
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    new = forms.CharField(
        label=_("New password"),
        strip=False,
        help_text=_("at least 8 characters, none of the usual ones"),
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


class AuditFilterForm(forms.Form):
    """Empty fields do not filter. Days are days in the reader's time zone."""

    person = forms.CharField(label=_("Person"), required=False)
    action = forms.CharField(label=_("Action"), required=False)
    since = forms.DateField(label=_("From day"), required=False, widget=forms.DateInput({"type": "date"}))
    until = forms.DateField(label=_("To day"), required=False, widget=forms.DateInput({"type": "date"}))
