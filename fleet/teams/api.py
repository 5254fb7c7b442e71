"""Teams, projects, the audit log, and who the caller is, over the API."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.rest.bodies import Body
from fleet.rest.filters import FlagFilter, MomentFilter
from fleet.teams.fields import one_line
from fleet.teams.models import APIToken, AuditEntry, Project, Role, Team, User
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView, TeamRows
from fleet.teams.teams import update_team
from fleet.teams.writing import WritableRows

TEAM_EXAMPLE = {
    "id": 1,
    "name": "Acme",
    "slug": "acme",
    "role": "operator",
    "currency": "USD",
    "time_zone": "Europe/Berlin",
    "is_sandbox": False,
    "created_at": "2026-11-01T09:00:00Z",
}


@extend_schema_serializer(examples=[OpenApiExample("team", TEAM_EXAMPLE)])
class TeamSerializer(serializers.ModelSerializer[Team]):
    role = serializers.SerializerMethodField(help_text="What the caller may do in it.")

    class Meta:
        model = Team
        fields = ["id", "name", "slug", "role", "currency", "time_zone", "is_sandbox", "created_at"]

    @extend_schema_field(serializers.ChoiceField(choices=Role.choices))
    def get_role(self, team: Team) -> str:
        return Access.of_request(self.context["request"]).roles[team.pk].value


@extend_schema_serializer(examples=[OpenApiExample("time zone", {"time_zone": "Asia/Shanghai"})])
class TeamChange(Body[dict[str, Any]]):
    """What is left out stays as it is."""

    name = serializers.CharField(min_length=2, max_length=80, required=False)
    currency = serializers.RegexField(
        r"^[A-Z]{3}$", required=False, help_text="ISO 4217, in capitals. Totals are shown in it."
    )
    time_zone = serializers.CharField(
        max_length=64, required=False, help_text="In which days and months of costs begin; they are summed again."
    )

    def validate_name(self, name: str) -> str:
        return one_line(name)

    def validate_time_zone(self, zone: str) -> str:
        if zone not in available_timezones():
            raise serializers.ValidationError(
                _("No time zone has this name. Write it as region/city, for example Europe/Berlin.")
            )
        return zone


class TeamViewSet(WritableRows[Team]):
    """Teams that the caller is in. A token is in one; people also see the sandbox."""

    http_method_names = ["get", "patch", "head"]
    write_role = Role.ADMIN
    bodies = {"partial_update": TeamChange}
    queryset = Team.objects.all()
    serializer_class = TeamSerializer
    team_path = "pk"
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]{1,60}"
    orderings = ("id", "name", "created_at")

    def visible_team_ids(self) -> list[int]:
        slug = None if self.detail else self.request.query_params.get("team")
        return [team.pk for team in Access.of_request(self.request).teams if slug in {None, team.slug}]

    def partial_update(self, request: Request, slug: str) -> Response:
        """Changes its name, its currency or its time zone. Its address stays."""
        team, asked = self.get_object(), self.body(request)
        kept = {"name": team.name, "currency": team.currency, "time_zone": team.time_zone}
        update_team(actor=self.actor(request), team=team, **kept | asked)
        return self.answer(team)


PROJECT_EXAMPLE = {
    "id": 3,
    "team": "acme",
    "name": "Vision",
    "slug": "vision",
    "created_at": "2026-11-02T10:00:00Z",
    "archived_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("project", PROJECT_EXAMPLE)])
class ProjectSerializer(serializers.ModelSerializer[Project]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")

    class Meta:
        model = Project
        fields = ["id", "team", "name", "slug", "created_at", "archived_at"]


class ProjectFilter(django_filters.FilterSet):
    slug = django_filters.CharFilter(help_text="Its address inside the team.")
    archived = FlagFilter("archived_at", "isnull", exclude=True, help_text="Whether it was put away.")


class ProjectViewSet(TeamRows[Project]):
    """Cost centres that machines are attributed to."""

    queryset = Project.objects.select_related("team")
    serializer_class = ProjectSerializer
    filterset_class = ProjectFilter
    orderings = ("id", "name", "created_at")


AUDIT_EXAMPLE = {
    "id": 90,
    "team": "acme",
    "at": "2026-11-30T08:00:00Z",
    "actor": "alice",
    "via": "page",
    "ip_address": "192.0.2.7",
    "action": "instance.update",
    "target_type": "Instance",
    "target_id": "17",
    "target_label": "train-01",
    "old": {"project": None},
    "new": {"project": "vision"},
}


@extend_schema_serializer(examples=[OpenApiExample("audit entry", AUDIT_EXAMPLE)])
class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    actor = serializers.CharField(source="actor_label", help_text="As they were called at that time.")
    old = serializers.DictField(help_text="Values before; only what changed.")
    new = serializers.DictField(help_text="Values after; only what changed.")

    class Meta:
        model = AuditEntry
        fields = list(AUDIT_EXAMPLE)


class AuditFilter(django_filters.FilterSet):
    action = django_filters.CharFilter(help_text="noun.verb, e.g. instance.update.")
    actor = django_filters.CharFilter("actor_label", help_text="As they were called then.")
    via = django_filters.CharFilter(help_text="page, api, agent or system.")
    target_type = django_filters.CharFilter(help_text="e.g. Instance.")
    target_id = django_filters.CharFilter(help_text="The id of what was changed.")
    since = MomentFilter("at", "gte", help_text="At or after this time.")
    until = MomentFilter("at", "lt", help_text="Before this time.")


class AuditViewSet(TeamRows[AuditEntry]):
    """Every write: who, from where, what, old and new values. For admins."""

    queryset = AuditEntry.objects.select_related("team")
    serializer_class = AuditEntrySerializer
    filterset_class = AuditFilter
    orderings = ("-at", "id")
    required_role = Role.ADMIN


class CallerUserSerializer(serializers.ModelSerializer[User]):
    class Meta:
        model = User
        fields = ["id", "username", "display_name", "email", "time_zone", "language"]


class CallerTokenSerializer(serializers.ModelSerializer[APIToken]):
    class Meta:
        model = APIToken
        fields = ["id", "name", "scope", "prefix", "created_at", "expires_at"]


ME_EXAMPLE = {
    "user": None,
    "token": {
        "id": 5,
        "name": "nightly report",
        "scope": "read",
        "prefix": "rrk_a1b2c3",
        "created_at": "2026-11-01T09:00:00Z",
        "expires_at": "2027-11-01T09:00:00Z",
    },
    "teams": [{**TEAM_EXAMPLE, "role": "viewer"}],
}


@extend_schema_serializer(examples=[OpenApiExample("a token", ME_EXAMPLE)])
class MeSerializer(serializers.Serializer[dict[str, Any]]):
    user = CallerUserSerializer(allow_null=True, help_text="The signed-in person; null for a token.")
    token = CallerTokenSerializer(allow_null=True, help_text="The API token; null for a session.")
    teams = TeamSerializer(many=True)


class MeView(ApiView):
    """Who the caller is and what they may do."""

    serializer_class = MeSerializer

    def get(self, request: Request) -> Response:
        user = request.user if request.user.is_authenticated else None
        caller = {"user": user, "token": request.auth, "teams": Access.of_request(request).teams}
        return Response(MeSerializer(caller, context={"request": request}).data)
