"""What callers send to keep a provider account: checked by the form of the page, so that both refuse the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from fleet.inventory.account_form import PREFIX, AccountForm
from fleet.inventory.models import ProviderAccount
from fleet.inventory.provider_choices import SELF_MADE
from fleet.providers.registry import adapters
from fleet.rest.bodies import Body
from fleet.teams.models import Team

VALUES_HELP = "The fields that the provider asks for (`manage.py providers --json`, or its form). Secrets are kept encrypted, and never answered."


@extend_schema_serializer(examples=[OpenApiExample("a new key", {"values": {"api_key": "rpa_…"}})])
class AccountBody(Body[dict[str, Any]]):
    """Every field may be left out of a change; what is left out stays."""

    name = serializers.CharField(max_length=80, required=False)
    values = serializers.DictField(
        child=serializers.CharField(max_length=20_000, allow_blank=True, trim_whitespace=False),
        required=False,
        help_text=VALUES_HELP,
    )
    monitor_only = serializers.BooleanField(
        required=False, help_text="Only watch: no act is offered. True unless told."
    )
    poll_interval_seconds = serializers.IntegerField(required=False, help_text="60 unless told.")


@extend_schema_serializer(
    examples=[
        OpenApiExample("account", {"provider": "runpod", "name": "RunPod", "values": {"api_key": "rpa_…"}}),
    ]
)
class NewAccountBody(AccountBody):
    provider = serializers.CharField(max_length=40, help_text="e.g. runpod.")
    name = serializers.CharField(max_length=80)

    def validate_provider(self, kind: str) -> str:
        known = sorted(set(adapters()) - set(SELF_MADE))
        if kind not in known:
            raise ValidationError(
                _("There is no such provider here. It is one of: %(names)s.") % {"names": ", ".join(known)}
            )
        return kind


@extend_schema_serializer(examples=[OpenApiExample("pause", {"paused": True})])
class PausedBody(Body[dict[str, Any]]):
    paused = serializers.BooleanField(help_text="Whether reading it stops.")


def arguments_of(
    asked: Mapping[str, Any], *, team: Team, kind: str, account: ProviderAccount | None = None
) -> dict[str, Any]:
    """For create_account and update_account. Raises ValidationError by the names of the body."""
    given = asked.get("values", {})
    refuse_unknown_values(kind, given)
    form = AccountForm(form_data(asked, given, account), team=team, kind=kind, account=account)
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        field = f"values.{name.removeprefix(PREFIX)}" if name.startswith(PREFIX) else name
        raise ValidationError({"non_field_errors" if name == "__all__" else field: str(errors[0])})
    return form.arguments()


def refuse_unknown_values(kind: str, given: Mapping[str, str]) -> None:
    known = [field.name for field in adapters()[kind].fields]
    for name in given:
        if name not in known:
            text = _("There is no such field here. It takes: %(names)s.") % {"names": ", ".join(known)}
            raise ValidationError({f"values.{name}"[:100]: text})


def form_data(asked: Mapping[str, Any], given: Mapping[str, str], account: ProviderAccount | None) -> dict[str, Any]:
    """As the page would send it, with what the account has where the caller says nothing."""
    kept: dict[str, Any] = {"poll_interval_seconds": 60, "monitor_only": True}
    options: dict[str, str] = {}
    if account is not None:
        kept = {name: getattr(account, name) for name in ("name", "monitor_only", "poll_interval_seconds")}
        options = account.options
    told = {**kept, **{name: asked[name] for name in asked if name not in {"values", "provider"}}}
    # A box that is not ticked is not sent.
    ticked = {name: value for name, value in told.items() if value is not False}
    return ticked | {PREFIX + name: value for name, value in {**options, **given}.items()}
