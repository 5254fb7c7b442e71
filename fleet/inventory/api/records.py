"""What is kept of machines over the API: observations of their providers, software reports of their agents, holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.environments.diff import rows_of
from fleet.inventory.environments.sources import versions_of_machine
from fleet.inventory.models import EnvironmentReport, Hold, HoldKind, Instance, Observation
from fleet.providers.base import InstanceState
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter, words
from fleet.rest.parameters import ids_of
from fleet.rest.problems import not_found
from fleet.teams.scoping import TeamRows

OBSERVATION_EXAMPLE = {
    "id": 300,
    "team": "acme",
    "instance": 17,
    "seen_at": "2026-11-29T18:00:31Z",
    "unchanged_until": "2026-11-29T17:59:31Z",
    "listed": True,
    "raw_state": "running",
    "state": "running",
    "billing": "full",
    "price_per_hour": "32.772600",
    "storage_price_per_hour": "0.109589",
    "currency": "USD",
    "provider_created_at": "2026-11-20T10:00:00Z",
    "provider_started_at": "2026-11-29T18:00:00Z",
    "provider_stopped_at": None,
    "rule_version": 1,
}


@extend_schema_serializer(examples=[OpenApiExample("observation", OBSERVATION_EXAMPLE)])
class ObservationSerializer(serializers.ModelSerializer[Observation]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")

    class Meta:
        model = Observation
        fields = list(OBSERVATION_EXAMPLE)


class ObservationFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    state = WordsFilter(choices=words(InstanceState), help_text="States, separated by commas.")
    listed = FlagFilter(help_text="False: the listing was complete and did not name it.")
    since = MomentFilter("seen_at", "gte", help_text="Seen at or after this time.")
    until = MomentFilter("seen_at", "lt", help_text="Seen before this time.")


class ObservationViewSet(TeamRows[Observation]):
    """What listings showed, one row per change; kept 25 months."""

    queryset = Observation.objects.select_related("instance__team")
    serializer_class = ObservationSerializer
    filterset_class = ObservationFilter
    team_path = "instance__team"
    orderings = ("-seen_at", "id")


ENVIRONMENT_EXAMPLE = {
    "id": 12,
    "team": "acme",
    "instance": 17,
    "reported_at": "2026-11-29T18:02:00Z",
    "software": {"os": "Ubuntu 24.04.3 LTS", "driver": "580.95.05", "frameworks": {"torch": "2.9.1+cu130"}},
}


@extend_schema_serializer(examples=[OpenApiExample("environment", ENVIRONMENT_EXAMPLE)])
class EnvironmentSerializer(serializers.ModelSerializer[EnvironmentReport]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    software = serializers.DictField(
        source="data", help_text="As the agent reports it (docs/agent-protocol.md); trust it like a stranger."
    )

    class Meta:
        model = EnvironmentReport
        fields = list(ENVIRONMENT_EXAMPLE)


class EnvironmentFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    since = MomentFilter("reported_at", "gte", help_text="Reported at or after this time.")
    until = MomentFilter("reported_at", "lt", help_text="Reported before this time.")


DIFF_EXAMPLE = {
    "left": 17,
    "right": 18,
    "rows": [
        {
            "name": "driver",
            "left": "580.95.05",
            "right": "570.124.06",
            "differs": True,
            "matters": True,
            "newer": "left",
        }
    ],
}
SIDES = [OpenApiParameter(name, int, required=True, description="A machine.") for name in ("left", "right")]


class DiffRowSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    left = serializers.CharField(help_text="Empty: not known, or not there.")
    right = serializers.CharField(help_text="Empty: not known, or not there.")
    differs = serializers.BooleanField()
    matters = serializers.BooleanField(help_text="Whether work that runs on one may break on the other by it.")
    newer = serializers.CharField(help_text="left, right, or empty.")


@extend_schema_serializer(examples=[OpenApiExample("two machines", DIFF_EXAMPLE)])
class DiffSerializer(serializers.Serializer[Any]):
    left = serializers.IntegerField()
    right = serializers.IntegerField()
    rows = DiffRowSerializer(many=True)


class EnvironmentViewSet(TeamRows[EnvironmentReport]):
    """Operating system, driver, CUDA and frameworks, one row per change; the newest is what the machine runs now."""

    queryset = EnvironmentReport.objects.select_related("instance__team")
    serializer_class = EnvironmentSerializer
    filterset_class = EnvironmentFilter
    team_path = "instance__team"
    orderings = ("-reported_at", "id")
    answers: ClassVar[Mapping[str, Any]] = {"diff": (200, DiffSerializer)}

    def get_known_parameters(self) -> Collection[str]:
        return {"left", "right", "team"} if self.action == "diff" else super().get_known_parameters()

    @extend_schema(parameters=SIDES)
    @action(detail=False, methods=["get"], filterset_class=None, pagination_class=None)
    def diff(self, request: Request) -> Response:
        """The software of two machines side by side: what matters first, then what differs, then the same."""
        left, right = (self._side(request, name) for name in ("left", "right"))
        rows = rows_of(versions_of_machine(left), versions_of_machine(right))
        return Response(DiffSerializer({"left": left.pk, "right": right.pk, "rows": rows}).data)

    def _side(self, request: Request, name: str) -> Instance:
        ids = ids_of(request, name, most=1)
        if not ids:
            raise ValidationError({name: _("Give the id of a machine.")})
        machine = Instance.objects.filter(pk=ids[0], team__in=self.visible_team_ids()).first()
        if machine is None:
            raise not_found(name, _("Not found: %(ids)s.") % {"ids": ids[0]})
        return machine


HOLD_EXAMPLE = {
    "id": 8,
    "team": "acme",
    "instance": 17,
    "kind": "person",
    "owner": "bob",
    "reason": "Evaluation runs until Monday",
    "started_at": "2026-11-29T18:10:00Z",
    "expires_at": "2026-12-01T08:00:00Z",
    "ended_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("hold", HOLD_EXAMPLE)])
class HoldSerializer(serializers.ModelSerializer[Hold]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")

    class Meta:
        model = Hold
        fields = list(HOLD_EXAMPLE)


class HoldFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    kind = WordsFilter(choices=HoldKind.choices, help_text="Kinds, separated by commas.")
    owner = django_filters.CharFilter("owner__username", help_text="A user name.")
    active = FlagFilter(method="filter_active", help_text="Whether it keeps its machine now.")

    def filter_active(self, holds: QuerySet[Hold], name: str, value: bool) -> QuerySet[Hold]:
        now = timezone.now()
        active = Q(ended_at=None) & Q(started_at__lte=now) & (Q(expires_at=None) | Q(expires_at__gt=now))
        return holds.filter(active) if value else holds.exclude(active)


class HoldViewSet(TeamRows[Hold]):
    """What keeps machines alive: jobs, people, heartbeats. Ended holds stay on record."""

    queryset = Hold.objects.select_related("instance__team", "owner")
    serializer_class = HoldSerializer
    filterset_class = HoldFilter
    team_path = "instance__team"
    orderings = ("-started_at", "id")
