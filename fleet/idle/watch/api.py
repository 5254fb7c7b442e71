"""Verdicts over the API: of every machine as it was judged last."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.idle.policies.models import UseMode
from fleet.idle.verdict.verdict import Answer
from fleet.idle.watch.words import reason_text
from fleet.inventory.models import Instance
from fleet.rest.filters import IdsFilter, MomentFilter, WordsFilter, words
from fleet.teams.scoping import TeamRows

REASON_EXAMPLE = {
    "code": "utilization",
    "subject": "",
    "value": 0.0,
    "limit": 2.0,
    "text": "GPUs read 0 % in every reading",
}
VERDICT_EXAMPLE = {
    "instance": 17,
    "team": "acme",
    "answer": "idle",
    "because": [REASON_EXAMPLE],
    "parts": {"bob": {"answer": "idle", "because": [REASON_EXAMPLE]}},
    "quiet_since": "2026-11-30T03:10:00Z",
    "since": "2026-11-30T04:10:00Z",
    "judged_at": "2026-11-30T08:00:00Z",
    "active_at": "2026-11-30T03:09:12Z",
    "mode": "interactive",
    "window_minutes": 60,
    "policy": 3,
}  # fmt: skip


@extend_schema_serializer(examples=[OpenApiExample("reason", REASON_EXAMPLE)])
class VerdictReasonSerializer(serializers.Serializer[dict[str, Any]]):
    code = serializers.CharField(help_text="What it is, for programs.")
    subject = serializers.CharField(help_text="What it is about: a GPU, an endpoint, a person; empty: the machine.")
    value = serializers.JSONField(help_text="The reading, or a time.")
    limit = serializers.JSONField(help_text="From where on the reading counts as use, or what is needed.")
    text = serializers.SerializerMethodField(help_text="In the language asked for.")

    @extend_schema_field({"type": "string"})
    def get_text(self, reason: dict[str, Any]) -> str:
        return reason_text(reason)


class VerdictPartSerializer(serializers.Serializer[dict[str, Any]]):
    answer = serializers.ChoiceField(choices=words(Answer))
    because = VerdictReasonSerializer(many=True)


@extend_schema_serializer(examples=[OpenApiExample("verdict", VERDICT_EXAMPLE)])
class IdleVerdictSerializer(serializers.ModelSerializer[Instance]):
    instance = serializers.IntegerField(source="pk", help_text="Id of the machine.")  # type: ignore[assignment]  # declared fields leave the class
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    answer = serializers.ChoiceField(source="idle_verdict.answer", choices=words(Answer))
    because = VerdictReasonSerializer(
        source="idle_verdict.because",
        many=True,
        help_text="What decided it; of idle, what was read and stayed below its limit.",
    )
    parts = serializers.DictField(
        source="idle_verdict.parts",
        child=VerdictPartSerializer(),
        help_text="Of shared machines, of each person's GPUs.",
    )
    quiet_since = serializers.DateTimeField(
        source="idle_verdict.quiet_since", allow_null=True, help_text="Of idle: since when that is proved."
    )
    since = serializers.DateTimeField(source="idle_verdict.since", help_text="Of this answer.")
    judged_at = serializers.DateTimeField(source="idle_verdict.judged_at")
    active_at = serializers.DateTimeField(
        source="idle_verdict.active_at", allow_null=True, help_text="When use, or somebody who came, was last seen."
    )
    mode = serializers.ChoiceField(
        source="idle_verdict.mode", choices=UseMode.choices, help_text="How the machine is used."
    )
    window_minutes = serializers.IntegerField(
        source="idle_verdict.window_minutes", help_text="For so long all of it has to rest."
    )
    policy = serializers.IntegerField(
        source="idle_verdict.policy_id", allow_null=True, help_text="Id; null: judged by the defaults."
    )

    class Meta:
        model = Instance
        fields = list(VERDICT_EXAMPLE)


class IdleVerdictFilter(django_filters.FilterSet):
    instance = IdsFilter("id", help_text="Ids of machines, separated by commas.")
    answer = WordsFilter("idle_verdict__answer", choices=words(Answer), help_text="Answers, separated by commas.")
    mode = WordsFilter("idle_verdict__mode", choices=UseMode.choices, help_text="Modes, separated by commas.")
    policy = IdsFilter("idle_verdict__policy", help_text="Ids of policies, separated by commas.")
    judged_since = MomentFilter("idle_verdict__judged_at", "gte", help_text="Judged at or after this time.")


class IdleVerdictViewSet(TeamRows[Instance]):
    """Whether each machine is idle, and what decided it: judged once a minute, and again right before a stop. Addressed by the machine's id."""

    queryset: QuerySet[Instance] = Instance.objects.filter(idle_verdict__isnull=False).select_related(
        "team", "idle_verdict"
    )
    serializer_class = IdleVerdictSerializer
    filterset_class = IdleVerdictFilter
    orderings = ("id", "name")
