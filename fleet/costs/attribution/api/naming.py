"""Fields by which bodies name whose money is to be, and the rows that they mean."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from fleet.costs.attribution.models import AttributionRule
from fleet.inventory.models import Instance, ProviderAccount
from fleet.rest.bodies import Body
from fleet.rest.filters import BIGGEST_ID
from fleet.teams.models import Project, Team, User


class WhoseFields(Body[dict[str, Any]]):
    project = serializers.CharField(max_length=60, required=False, allow_null=True, help_text="A project's slug.")
    owner = serializers.CharField(max_length=150, required=False, allow_null=True, help_text="A member's user name.")


def id_field(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1, max_value=BIGGEST_ID, required=False, allow_null=True, help_text=help_text
    )


def rows_named(team: Team, asked: dict[str, Any]) -> dict[str, Any]:
    """`asked` with rows instead of names. Raises ValidationError, by field, for what is not of the team."""
    ways: dict[str, tuple[QuerySet[Any], str]] = {
        "project": (Project.objects.filter(team=team), "slug"),
        "owner": (User.objects.filter(memberships__team=team), "username"),
        "account": (ProviderAccount.objects.filter(team=team).defer("credentials"), "pk"),
        "instance": (Instance.objects.filter(team=team), "pk"),
        "rule": (AttributionRule.objects.filter(team=team, ended_at=None), "pk"),
    }
    found = dict(asked)
    for field, (rows, key) in ways.items():
        if found.get(field) is not None:
            found[field] = rows.filter(**{key: found[field]}).first()
            if found[field] is None:
                raise ValidationError({field: _("Not found: %(ids)s.") % {"ids": asked[field]}})
    return found
