"""The form of a provider account, made from the fields that its adapter declares. A secret goes in and is never drawn again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from fleet.inventory.accounts import MANUAL_NAME, POLL_CHOICES_SECONDS
from fleet.inventory.adapters import adapter_class, secrets_of
from fleet.inventory.credentials import CredentialError, keyring
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Field
from fleet.providers.errors import InvalidOption
from fleet.teams.fields import LineField
from fleet.teams.models import Team

# Declared fields are prefixed: an adapter may well have one that is called "name".
PREFIX = "option_"


def interval_words(seconds: int) -> str:
    if seconds < 60:
        return ngettext("%(n)d second", "%(n)d seconds", seconds) % {"n": seconds}
    return ngettext("%(n)d minute", "%(n)d minutes", seconds // 60) % {"n": seconds // 60}


class AccountForm(forms.Form):
    """`values()` is what the use-cases take. Errors of the adapter stand at the field that they are about."""

    name = LineField(label=_("Name in Rackrent"), max_length=80, help_text=_("shown on the fleet map and in costs"))

    def __init__(
        self, *args: Any, team: Team, kind: str, account: ProviderAccount | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.team, self.kind, self.account = team, kind, account
        self.declared = adapter_class(kind).fields
        for field in self.declared:
            self.fields[PREFIX + field.name] = form_field(field, kept=account is not None)
        self.fields["poll_interval_seconds"] = forms.TypedChoiceField(
            label=_("Read prices and machines every"),
            choices=[(seconds, interval_words(seconds)) for seconds in POLL_CHOICES_SECONDS],
            coerce=int,
            initial=60,
        )
        self.fields["monitor_only"] = forms.BooleanField(
            label=_("Only watch"),
            required=False,
            initial=True,
            help_text=_("a key that may read is enough; no action is offered for its machines"),
        )
        for name, value in initial_of(account).items():
            self.fields[name].initial = value

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        others = ProviderAccount.objects.filter(team=self.team, name=name, disconnected_at=None)
        if self.account:
            others = others.exclude(pk=self.account.pk)
        if others.exists() or name == MANUAL_NAME:
            raise forms.ValidationError(_("Another account has this name; choose one that tells them apart."))
        return name

    def clean(self) -> None:
        if self.errors:
            return
        try:
            # Without a key to encrypt with, nothing may be typed into the void.
            keyring()
            kept = secrets_of(self.account) if self.account else {}
            typed = {name: value for name, value in self.values().items() if value}
            blank = {field.name: "" for field in self.declared}
            adapter_class(self.kind)({**blank, **kept, **typed})
        except InvalidOption as error:
            self.add_error(PREFIX + error.field, gettext(error.message) % error.params)
        except CredentialError as error:
            raise forms.ValidationError(gettext(str(error))) from None

    def values(self) -> dict[str, str]:
        """The declared fields; an untouched secret is ""."""
        return {field.name: self.cleaned_data.get(PREFIX + field.name) or "" for field in self.declared}

    def arguments(self) -> dict[str, Any]:
        """For create_account and update_account."""
        names = ("name", "poll_interval_seconds", "monitor_only")
        return {"values": self.values(), **{name: self.cleaned_data[name] for name in names}}


def form_field(field: Field, *, kept: bool) -> forms.CharField:
    """`kept`: a secret is there already, so an empty box means "as it was"."""
    return forms.CharField(
        label=_(field.label),
        help_text=secret_hint(field, kept=kept) if field.secret else (_(field.help_text) if field.help_text else ""),
        required=field.required and not (field.secret and kept),
        max_length=20_000,
        initial=field.default,
        widget=widget_of(field, kept=kept),
    )


def secret_hint(field: Field, *, kept: bool) -> str:
    fate = gettext("leave empty to keep the one there") if kept else gettext("stored encrypted, never shown again")
    return f"{gettext(field.help_text)}; {fate}" if field.help_text else fate


def widget_of(field: Field, *, kept: bool) -> forms.Widget:
    quiet = {"autocomplete": "off", "spellcheck": "false"}
    if field.secret:
        held = {"placeholder": "••••••••••••"} if kept else {}
        return forms.PasswordInput(attrs={"autocomplete": "new-password", **held}, render_value=False)
    if field.multiline:
        return forms.Textarea(attrs={"rows": 4, **quiet})
    return forms.TextInput(attrs=quiet)


def initial_of(account: ProviderAccount | None) -> dict[str, Any]:
    if account is None:
        return {}
    options = {PREFIX + name: value for name, value in account.options.items()}
    known = {PREFIX + field.name for field in adapter_class(account.kind).fields if not field.secret}
    return {
        "name": account.name,
        "monitor_only": account.monitor_only,
        "poll_interval_seconds": account.poll_interval_seconds,
        **{name: value for name, value in options.items() if name in known},
    }
