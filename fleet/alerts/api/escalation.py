"""When urgent alerts that nobody answers escalate by themselves, and to whom, over the API."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.api.examples import ESCALATION_EXAMPLE
from fleet.alerts.api.rules import TEAM, RuleAddress
from fleet.alerts.escalation import MOST_MINUTES, find_member, policy_of, update_escalation
from fleet.alerts.models import EscalationPolicy
from fleet.rest.bodies import Body, naming_form_fields
from fleet.teams.audit import Actor


@extend_schema_serializer(examples=[OpenApiExample("escalation", ESCALATION_EXAMPLE)])
class EscalationSerializer(serializers.Serializer[EscalationPolicy]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    after_minutes = serializers.IntegerField(
        allow_null=True, help_text="Since people were told. Null: they do not escalate by themselves."
    )
    person = serializers.CharField(
        source="person.username", default=None, allow_null=True,
        help_text="A user name; null: whoever stands behind the first readers.",
    )  # fmt: skip


@extend_schema_serializer(examples=[OpenApiExample("to somebody", {"after_minutes": 10, "person": "bob"})])
class EscalationChanges(Body[dict[str, Any]]):
    """Only what is to change."""

    after_minutes = serializers.IntegerField(
        min_value=1, max_value=MOST_MINUTES, required=False, allow_null=True, help_text="Null: not by themselves."
    )
    person = serializers.CharField(
        max_length=150, required=False, allow_null=True,
        help_text="User name of a member who has a channel of their own. Null: whoever stands behind the first readers.",
    )  # fmt: skip


class EscalationView(RuleAddress):
    """Urgent alerts that nobody acknowledges: after how long they escalate, and to whom."""

    serializer_class = EscalationSerializer

    @extend_schema(parameters=[TEAM])
    def get(self, request: Request) -> Response:
        return Response(EscalationSerializer(policy_of(self.team(request))).data)

    @extend_schema(parameters=[TEAM], request=EscalationChanges, description="Changes what is sent and keeps the rest.")
    def patch(self, request: Request) -> Response:
        team = self.team(request)
        body = EscalationChanges(data=request.data)
        body.is_valid(raise_exception=True)
        asked, policy = body.validated_data, policy_of(team)
        with naming_form_fields():
            person = policy.person
            if "person" in asked:
                person = find_member(team=team, username=asked["person"]) if asked["person"] else None
            minutes = asked.get("after_minutes", policy.after_minutes)
            update_escalation(
                actor=Actor.of_call(request), team=team, now=timezone.now(), after_minutes=minutes, person=person
            )
        return Response(EscalationSerializer(policy_of(team)).data)
