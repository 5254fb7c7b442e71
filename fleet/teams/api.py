"""Teams, projects, the audit log, and who the caller is, over the API."""

from __future__ import annotations

from typing import Any

from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.rest.filters import FlagFilter, MomentFilter
from fleet.teams.models import APIToken, AuditEntry, Project, Role, Team, User
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView, TeamRows

TEAM_EXAMPLE = {
    "id": 1,
    "name": "Acme",
    "slug": "acme",
    "role": "operator",
    "currency": "USD",
    "is_sandbox": False,
    "created_at": "2026-11-01T09:00:00Z",
}


@extend_schema_serializer(examples=[OpenApiExample("team", TEAM_EXAMPLE)])
class TeamSerializer(serializers.ModelSerializer[Team]):
    role = serializers.SerializerMethodField(help_text="What the caller may do in it.")

    class Meta:
        model = Team
        fields = ["id", "name", "slug", "role", "currency", "is_sandbox", "created_at"]

    @extend_schema_field(serializers.ChoiceField(choices=Role.choices))
    def get_role(self, team: Team) -> str:
        return Access.of_request(self.context["request"]).roles[team.pk].value


class TeamViewSet(TeamRows[Team]):
    """Teams that the caller is in. A token is in one; people also see the sandbox."""

    queryset = Team.objects.all()
    serializer_class = TeamSerializer
    team_path = "pk"
    lookup_field = "slug"
    lookup_value_regex = "[-a-zA-Z0-9_]{1,60}"
    orderings = ("id", "name", "created_at")

    def visible_team_ids(self) -> list[int]:
        slug = None if self.detail else self.request.query_params.get("team")
        return [team.pk for team in Access.of_request(self.request).teams if slug in {None, team.slug}]


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
