"""The rules about unusual money over the API: what each looks for, the team's own thresholds, and how often they would have fired."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.anomalies.shown import Shown, shown_rules
from fleet.costs.anomalies.standing import standing_of, update_anomaly_rule
from fleet.costs.anomalies.words import fired_text
from fleet.rest.bodies import Body, naming_form_fields
from fleet.teams.audit import Actor
from fleet.teams.models import Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, TokenThrottle, UserThrottle, WriteThrottle

TEAM = OpenApiParameter("team", description="Address (slug) of the team; needed by a person who is in several.")
KIND = OpenApiParameter(
    "kind", OpenApiTypes.STR, OpenApiParameter.PATH, description="The kind of rule, as in `costs_burn_rate`."
)
RULE_EXAMPLE = {
    "kind": "costs_burn_rate",
    "cause": "costs.burn_rate",
    "name": "Burn rate",
    "says": "What is charged an hour now, against the median of the last seven days.",
    "enabled": True,
    "severity": "warning",
    "thresholds": [
        {"name": "factor", "value": 1.5, "says": "an hour costs 1.5 times the median of seven days"},
        {"name": "least_a_day", "value": 50.0, "says": "and it comes to at least $50.00 a day"},
    ],
    "fired": {
        "times": 1,
        "days": ["2026-11-12"],
        "judged_days": 30,
        "says": "It would have fired once, and been open on 1 of 30 days.",
    },
    "changed_at": None,
    "changed_by": None,
}


class AnomalyThresholdSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.FloatField(help_text="Money is in the team's currency.")
    says = serializers.CharField(source="text", help_text="In the language asked for.")


class AnomalyFiredSerializer(serializers.Serializer[Any]):
    times = serializers.IntegerField(help_text="Days that follow each other count once.")
    days = serializers.ListField(child=serializers.DateField())
    judged_days = serializers.IntegerField(source="judged", help_text="Days of which enough is known.")
    says = serializers.SerializerMethodField(help_text="In the language asked for.")

    def get_says(self, fired: Any) -> str:
        return fired_text(fired)


@extend_schema_serializer(examples=[OpenApiExample("rule", RULE_EXAMPLE)])
class AnomalyRuleSerializer(serializers.Serializer[Shown]):
    kind = serializers.CharField(source="standing.kind")
    cause = serializers.CharField(source="standing.rule.cause", help_text="The cause of its alerts.")
    name = serializers.CharField(source="words.name", help_text="In the language asked for.")
    says = serializers.CharField(source="words.says", help_text="What it looks for, in the language asked for.")
    enabled = serializers.BooleanField(source="standing.enabled")
    severity = serializers.CharField(source="standing.rule.severity")
    thresholds = AnomalyThresholdSerializer(source="limits", many=True)
    fired = AnomalyFiredSerializer(help_text="In the last 30 days with these thresholds, had it been on.")
    changed_at = serializers.DateTimeField(source="standing.row.changed_at", default=None, allow_null=True)
    changed_by = serializers.CharField(source="standing.row.changed_by.username", default=None, allow_null=True)


@extend_schema_serializer(examples=[OpenApiExample("rules", {"results": [RULE_EXAMPLE]})])
class AnomalyRulesSerializer(serializers.Serializer[Any]):
    results = AnomalyRuleSerializer(many=True)


@extend_schema_serializer(examples=[OpenApiExample("louder", {"thresholds": {"factor": 2}, "enabled": True})])
class AnomalyRuleChanges(Body[dict[str, Any]]):
    """Only what is to change. A threshold of null: the rule's own value again."""

    enabled = serializers.BooleanField(required=False, help_text="Whether it looks.")
    thresholds = serializers.DictField(
        child=serializers.FloatField(allow_null=True), required=False, help_text="By name; the others stay as they are."
    )


class AnomalyAddress(ApiView):
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, WriteThrottle)
    known_parameters = ("team",)

    def team(self, request: Request) -> Team:
        return one_team(request, role=Role.VIEWER if request.method == "GET" else Role.OPERATOR)


class AnomalyRulesView(AnomalyAddress):
    """What is looked for in the team's money, with the values that hold in it. What was found are alerts of these causes."""

    serializer_class = AnomalyRulesSerializer

    @extend_schema(operation_id="anomaly_rules_list", parameters=[TEAM])
    def get(self, request: Request) -> Response:
        rules = shown_rules(team=self.team(request), now=timezone.now())
        return Response(AnomalyRulesSerializer({"results": rules}).data)


class AnomalyRuleView(AnomalyAddress):
    """One rule of the team."""

    serializer_class = AnomalyRuleSerializer

    @extend_schema(parameters=[TEAM, KIND])
    def get(self, request: Request, kind: str) -> Response:
        return self.answer(self.team(request), kind)

    @extend_schema(
        parameters=[TEAM, KIND], request=AnomalyRuleChanges, description="Changes what is sent and keeps the rest."
    )
    def patch(self, request: Request, kind: str) -> Response:
        team = self.team(request)
        standing = standing_of(team, kind)
        if standing is None:
            raise NotFound
        body = AnomalyRuleChanges(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        thresholds = {**standing.own, **asked.get("thresholds", {})}
        with naming_form_fields():
            update_anomaly_rule(
                actor=Actor.of_call(request),
                team=team,
                kind=kind,
                now=timezone.now(),
                enabled=asked.get("enabled", standing.enabled),
                thresholds={name: value for name, value in thresholds.items() if value is not None},
            )
        return self.answer(team, kind)

    def answer(self, team: Team, kind: str) -> Response:
        found = next((one for one in shown_rules(team=team, now=timezone.now()) if one.standing.kind == kind), None)
        if found is None:
            raise NotFound
        return Response(AnomalyRuleSerializer(found).data)
