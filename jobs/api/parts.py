"""What belongs to one job, at its address: what became of it, how far it said it was, and what the diagnosis found."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Any, ClassVar, TypeVar

from django.db import models
from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.rest.filters import FlagFilter, MomentFilter, WholeFilter, WordsFilter
from fleet.teams.permissions import Access
from fleet.teams.scoping import TeamRows
from jobs.api.part_examples import EVENT_EXAMPLE, FINDING_EXAMPLE, POINT_EXAMPLE
from jobs.book.models import Job, JobEvent
from jobs.book.words import event_detail, event_text
from jobs.diagnosis.finding import Sure
from jobs.findings.models import JobFinding
from jobs.findings.words import reason_text, remedy_text, title_of
from jobs.metrics.models import JobPoint

M = TypeVar("M", bound=models.Model)


class PartsOfJob(TeamRows[M]):
    """Rows of one job. `job_path` is the way from a row to it."""

    job_path: ClassVar[str]
    shared_parameters = ()  # type: ignore[assignment]  # the address says which team

    def get_queryset(self) -> QuerySet[M]:
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        if not Job.objects.filter(pk=self.kwargs["pk"], team__in=self.visible_team_ids()).exists():
            raise Http404
        return rows.filter(**{self.job_path: self.kwargs["pk"]})

    def visible_team_ids(self) -> list[int]:
        """As of one row: the address says which job."""
        return [team.pk for team in Access.of_request(self.request).teams]

    def get_known_parameters(self) -> Collection[str]:
        return set(super().get_known_parameters()) - {"team"}


def attempt_filter(path: str) -> WholeFilter:
    return WholeFilter(path, low=1, help_text="Number of an attempt.")


class AttemptNumber(serializers.IntegerField):
    def __init__(self, **more: Any) -> None:
        super().__init__(source="attempt.number", help_text="Number of the attempt.", **more)


@extend_schema_serializer(examples=[OpenApiExample("event", EVENT_EXAMPLE)])
class JobEventSerializer(serializers.ModelSerializer[JobEvent]):
    attempt = AttemptNumber(default=None, allow_null=True)
    rank = serializers.IntegerField(source="node.rank", default=None, allow_null=True)
    instance = serializers.IntegerField(source="node.instance_id", default=None, allow_null=True)  # type: ignore[assignment]  # declared fields leave the class
    kind = serializers.CharField(help_text="A state that it entered, or a code.")
    says = serializers.SerializerMethodField(help_text="In the language asked for.")
    values = serializers.DictField()
    by = serializers.CharField(
        source="by.username",
        default=None,
        allow_null=True,
        help_text="A user name; null for tokens and Rackrent itself.",
    )

    class Meta:
        model = JobEvent
        fields = list(EVENT_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_says(self, event: JobEvent) -> str:
        detail = event_detail(event.values, event.detail)
        return f"{event_text(event)}: {detail}" if detail else event_text(event)


class JobEventFilter(django_filters.FilterSet):
    attempt = attempt_filter("attempt__number")
    kind = django_filters.CharFilter(help_text="A state or a code.")
    since = MomentFilter("at", "gte", help_text="At or after this time.")


class JobEventViewSet(PartsOfJob[JobEvent]):
    """Every change of a job, the first first."""

    queryset = JobEvent.objects.select_related("attempt", "node", "by")
    serializer_class = JobEventSerializer
    filterset_class = JobEventFilter
    team_path, job_path = "job__team", "job"
    orderings = ("at", "id")


class FiniteField(serializers.FloatField):
    """JSON has no word for what is no number."""

    def to_representation(self, value: float) -> float | None:  # type: ignore[override]  # NaN has none
        return value if isfinite(value) else None


@extend_schema_serializer(examples=[OpenApiExample("point", POINT_EXAMPLE)])
class JobPointSerializer(serializers.ModelSerializer[JobPoint]):
    serializer_field_mapping: ClassVar[dict[Any, Any]] = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.FloatField: FiniteField,
    }
    attempt = AttemptNumber()
    source = serializers.CharField(help_text="`log`, or `call` where the program told it itself.")  # type: ignore[assignment]  # declared fields leave the class
    line = serializers.IntegerField(allow_null=True, help_text="Of the log of rank 0.")
    loss = FiniteField(allow_null=True, help_text="Null where it was not said, or is no number: see not_finite.")
    others = serializers.DictField(child=serializers.FloatField(), help_text="What a call named and has no column.")
    not_finite = serializers.SerializerMethodField(help_text="Values that are NaN or infinite.")

    class Meta:
        model = JobPoint
        fields = list(POINT_EXAMPLE)

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_not_finite(self, point: JobPoint) -> list[str]:
        values = {name: getattr(point, name, None) for name in POINT_EXAMPLE}
        return [name for name, value in values.items() if isinstance(value, float) and not isfinite(value)]


class JobPointFilter(django_filters.FilterSet):
    attempt = attempt_filter("attempt__number")
    since = MomentFilter("at", "gte", help_text="At or after this time.")
    until = MomentFilter("at", "lt", help_text="Before this time.")


class JobPointViewSet(PartsOfJob[JobPoint]):
    """How far it said it was, as its log or its program told it; null is “it did not say”."""

    queryset = JobPoint.objects.select_related("attempt")
    serializer_class = JobPointSerializer
    filterset_class = JobPointFilter
    team_path, job_path = "attempt__job__team", "attempt__job"
    orderings = ("at", "id")


class SaysSerializer(serializers.Serializer[dict[str, Any]]):
    code = serializers.CharField()
    values = serializers.DictField()
    says = serializers.CharField(help_text="In the language asked for; empty where a value is missing.")


class RemedySerializer(SaysSerializer):
    saves_bytes = serializers.FloatField(allow_null=True, help_text="Of the memory of one GPU, as the planner reckons.")


@extend_schema_serializer(examples=[OpenApiExample("finding", FINDING_EXAMPLE)])
class JobFindingSerializer(serializers.ModelSerializer[JobFinding]):
    attempt = AttemptNumber()
    title = serializers.SerializerMethodField(help_text="In the language asked for.")
    sure = serializers.ChoiceField(
        choices=[sure.value for sure in Sure],
        help_text="certain: the run says so itself; likely: readings agree; possible: worth a look.",
    )
    because = serializers.SerializerMethodField(help_text="What shows it.")
    remedies = serializers.SerializerMethodField(help_text="What to do, first things first.")
    lines = serializers.ListField(child=serializers.IntegerField(), help_text="Numbers of lines of the log.")
    gpus = serializers.ListField(child=serializers.IntegerField(), help_text="Indexes; empty: all, or none.")
    gone_at = serializers.DateTimeField(allow_null=True, help_text="When it was not found any more.")

    class Meta:
        model = JobFinding
        fields = list(FINDING_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_title(self, finding: JobFinding) -> str:
        return title_of(finding.code)

    @extend_schema_field(SaysSerializer(many=True))
    def get_because(self, finding: JobFinding) -> list[dict[str, Any]]:
        return [{**one, "says": reason_text(one["code"], one["values"])} for one in finding.because]

    @extend_schema_field(RemedySerializer(many=True))
    def get_remedies(self, finding: JobFinding) -> list[dict[str, Any]]:
        return [
            {**one, "says": remedy_text(one["code"], one["values"], one.get("saves_bytes"))} for one in finding.remedies
        ]


class JobFindingFilter(django_filters.FilterSet):
    attempt = attempt_filter("attempt__number")
    sure = WordsFilter(choices=[(sure.value, sure.value) for sure in Sure], help_text="Words, separated by commas.")
    stands = FlagFilter("gone_at", "isnull", help_text="Whether it is still found.")


class JobFindingViewSet(PartsOfJob[JobFinding]):
    """What the diagnosis found, with what shows it and what to do."""

    queryset = JobFinding.objects.select_related("attempt")
    serializer_class = JobFindingSerializer
    filterset_class = JobFindingFilter
    team_path, job_path = "attempt__job__team", "attempt__job"
    orderings = ("-found_at", "id")
