"""The rules of a team over the API: what each looks for, the team's own thresholds, and how often they would have fired."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.api.examples import PREVIEW_EXAMPLE, RULE_EXAMPLE
from fleet.alerts.choices import MAX_FOR_SECONDS, update_rule
from fleet.alerts.models import Severity
from fleet.alerts.preview import preview_rule
from fleet.alerts.preview_words import preview_text
from fleet.alerts.standing import Limit, Standing, standing_of, standings_of
from fleet.rest.bodies import Body, naming_form_fields
from fleet.teams.audit import Actor
from fleet.teams.models import Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, TokenThrottle, UserThrottle, WriteThrottle

TEAM = OpenApiParameter("team", description="Address (slug) of the team; needed by a person who is in several.")
KIND = OpenApiParameter(
    "kind", OpenApiTypes.STR, OpenApiParameter.PATH, description="The kind of rule, as in `thermal`."
)


class ThresholdSerializer(serializers.Serializer[Limit]):
    name = serializers.CharField(source="threshold.name")
    value = serializers.FloatField()
    default = serializers.FloatField(source="threshold.default")
    low = serializers.FloatField(source="threshold.low")
    high = serializers.FloatField(source="threshold.high")
    unit = serializers.CharField(source="threshold.unit")
    says = serializers.CharField(source="text", help_text="In the language asked for.")


@extend_schema_serializer(examples=[OpenApiExample("rule", RULE_EXAMPLE)])
class RuleSerializer(serializers.Serializer[Standing]):
    kind = serializers.CharField(source="rule.kind")
    cause = serializers.CharField(source="rule.cause", help_text="The family of trouble whose alert it adds to.")
    name = serializers.CharField(source="words.name", help_text="In the language asked for.")
    says = serializers.CharField(source="words.says", help_text="What it looks for, in the language asked for.")
    enabled = serializers.BooleanField()
    severity = serializers.ChoiceField(choices=Severity.choices)
    default_severity = serializers.ChoiceField(source="rule.severity", choices=Severity.choices)
    for_seconds = serializers.IntegerField(help_text="How long it has to last before anybody is told.")
    default_for_seconds = serializers.IntegerField(source="rule.for_seconds")
    thresholds = ThresholdSerializer(source="limits", many=True)
    changed_at = serializers.DateTimeField(source="row.changed_at", default=None, allow_null=True)
    changed_by = serializers.CharField(source="row.changed_by.username", default=None, allow_null=True)


@extend_schema_serializer(examples=[OpenApiExample("rules", {"results": [RULE_EXAMPLE]})])
class RulesSerializer(serializers.Serializer[Any]):
    results = RuleSerializer(many=True)


@extend_schema_serializer(examples=[OpenApiExample("hotter", {"thresholds": {"celsius": 90}, "severity": None})])
class RuleChanges(Body[dict[str, Any]]):
    """Only what is to change. Null: the rule's own value again."""

    enabled = serializers.BooleanField(required=False, help_text="Whether it looks.")
    severity = serializers.ChoiceField(choices=Severity.choices, required=False, allow_null=True)
    for_seconds = serializers.IntegerField(
        min_value=0, max_value=MAX_FOR_SECONDS, required=False, allow_null=True, help_text="How long it has to last."
    )
    thresholds = serializers.DictField(
        child=serializers.FloatField(allow_null=True), required=False, help_text="By name; the others stay as they are."
    )


@extend_schema_serializer(examples=[OpenApiExample("preview", PREVIEW_EXAMPLE)])
class PreviewSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    times = serializers.IntegerField(allow_null=True, help_text="Null: nobody can say; `why` is the reason.")
    machines = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True, help_text="30 days ago, or later where history is shorter.")
    until = serializers.DateTimeField()
    counted = serializers.CharField(help_text="What was counted: hours, events or changes; empty where nothing was.")
    why = serializers.CharField(help_text="no_history, other_store or too_long; empty where it was counted.")
    says = serializers.CharField(help_text="In the language asked for.")


class RuleAddress(ApiView):
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, WriteThrottle)
    known_parameters = ("team",)

    def team(self, request: Request) -> Team:
        return one_team(request, role=Role.VIEWER if request.method == "GET" else Role.OPERATOR)

    def standing(self, team: Team, kind: str) -> Standing:
        found = standing_of(team, kind)
        if found is None:
            raise NotFound
        return found


class RulesView(RuleAddress):
    """What Rackrent looks for by itself, with the values that hold in the team."""

    serializer_class = RulesSerializer

    @extend_schema(operation_id="alert_rules_list", parameters=[TEAM])
    def get(self, request: Request) -> Response:
        return Response(RulesSerializer({"results": standings_of(self.team(request))}).data)


class RuleView(RuleAddress):
    """One rule of the team."""

    serializer_class = RuleSerializer

    @extend_schema(parameters=[TEAM, KIND])
    def get(self, request: Request, kind: str) -> Response:
        return Response(RuleSerializer(self.standing(self.team(request), kind)).data)

    @extend_schema(parameters=[TEAM, KIND], request=RuleChanges, description="Changes what is sent and keeps the rest.")
    def patch(self, request: Request, kind: str) -> Response:
        team = self.team(request)
        standing = self.standing(team, kind)
        body = RuleChanges(data=request.data)
        body.is_valid(raise_exception=True)
        asked = merged(standing, body.validated_data)
        with naming_form_fields():
            update_rule(actor=Actor.of_call(request), team=team, kind=kind, now=timezone.now(), **asked)
        return Response(RuleSerializer(self.standing(team, kind)).data)


class RulePreviewView(RuleAddress):
    """How often the rule would have fired in the last 30 days with the values that hold now."""

    serializer_class = PreviewSerializer

    @extend_schema(parameters=[TEAM, KIND])
    def get(self, request: Request, kind: str) -> Response:
        team = self.team(request)
        standing = self.standing(team, kind)
        found = preview_rule(
            team=team,
            kind=kind,
            now=timezone.now(),
            thresholds=standing.own_thresholds,
            for_seconds=standing.own_for_seconds,
        )
        shown = {name: getattr(found, name) for name in PREVIEW_EXAMPLE if name != "says"}
        return Response(PreviewSerializer({**shown, "says": preview_text(found)}).data)


def merged(standing: Standing, asked: dict[str, Any]) -> dict[str, Any]:
    """What update_rule takes: the whole rule, with what was sent instead of what was."""
    thresholds = {**standing.own_thresholds, **asked.get("thresholds", {})}
    return {
        "enabled": asked.get("enabled", standing.enabled),
        "severity": asked.get("severity", standing.own_severity),
        "for_seconds": asked.get("for_seconds", standing.own_for_seconds),
        "thresholds": {name: value for name, value in thresholds.items() if value is not None},
    }
