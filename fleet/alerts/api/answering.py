"""How fast people answer to alerts, over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.answering import Answers, AnswerTimes, Spread, answer_times
from fleet.alerts.api.examples import ANSWER_TIMES_EXAMPLE
from fleet.alerts.api.rules import TEAM
from fleet.alerts.models import Severity
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView


class SpreadSerializer(serializers.Serializer[Spread]):
    count = serializers.IntegerField()
    median_seconds = serializers.SerializerMethodField(help_text="Null: there were none.")
    worst_seconds = serializers.SerializerMethodField(help_text="Null: there were none.")

    @extend_schema_field({"type": ["number", "null"]})
    def get_median_seconds(self, spread: Spread) -> float | None:
        return _seconds(spread.median)

    @extend_schema_field({"type": ["number", "null"]})
    def get_worst_seconds(self, spread: Spread) -> float | None:
        return _seconds(spread.worst)


class AnswersSerializer(serializers.Serializer[Answers]):
    acknowledged = SpreadSerializer(help_text="From when people were first told.")
    resolved = SpreadSerializer(help_text="From when it opened.")
    by_itself = serializers.IntegerField(help_text="Of those resolved, how many nobody acknowledged or put away.")
    snoozed = serializers.IntegerField(help_text="How often one was snoozed.")
    came_back_worse = serializers.IntegerField(help_text="How often one came back early, because it got worse.")


class SeverityAnswersSerializer(AnswersSerializer):
    severity = serializers.ChoiceField(choices=Severity.choices, help_text="The worst that an alert had.")


@extend_schema_serializer(examples=[OpenApiExample("answer times", ANSWER_TIMES_EXAMPLE)])
class AnswerTimesSerializer(serializers.Serializer[AnswerTimes]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    results = SeverityAnswersSerializer(many=True, help_text="One a severity, worst first.")


class AnswerTimesView(ApiView):
    """How fast the team acknowledged the alerts of the last 30 days, and how fast they ended."""

    serializer_class = AnswerTimesSerializer
    known_parameters = ("team",)

    @extend_schema(parameters=[TEAM])
    def get(self, request: Request) -> Response:
        times = answer_times(team=one_team(request), now=timezone.now())
        rows: list[dict[str, Any]] = [
            {"severity": severity.value, **AnswersSerializer(answers).data}
            for severity, answers in times.by_severity.items()
        ]
        return Response({"since": times.since, "until": times.until, "results": rows})


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()
