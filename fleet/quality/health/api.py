"""What machines went through day by day, over the API."""

from __future__ import annotations

from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.quality.models import HealthDay
from fleet.rest.filters import IdsFilter
from fleet.teams.scoping import TeamRows

EXAMPLE = {
    "id": 5310,
    "team": "acme",
    "instance": 17,
    "provider": "runpod",
    "day": "2026-11-29",
    "gpu_hours": 192.0,
    "counts": {"xid": 1, "lost": 1, "faults": 1},
    "throttled_seconds": 0.0,
    "lost_seconds": 5400.0,
    "score": 70,
}


@extend_schema_serializer(examples=[OpenApiExample("a day", EXAMPLE)])
class HealthDaySerializer(serializers.ModelSerializer[HealthDay]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    day = serializers.DateField(help_text="UTC; today's row grows.")
    gpu_hours = serializers.FloatField(help_text="In which readings came.")
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Kind -> how often; `faults`: how many faults they were (docs/quality.md).",
    )
    throttled_seconds = serializers.FloatField(
        help_text="Of GPU time, at most so much: held back by heat or the power supply."
    )
    lost_seconds = serializers.FloatField(help_text="Of GPU time in which nothing of a GPU could be read.")
    score = serializers.IntegerField(allow_null=True, help_text="100: nothing went wrong; null: too little was read.")

    class Meta:
        model = HealthDay
        fields = list(EXAMPLE)


class HealthDayFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    provider = django_filters.CharFilter(help_text="e.g. runpod.")
    since = django_filters.DateFilter("day", "gte", help_text="From this day on.")
    until = django_filters.DateFilter("day", "lt", help_text="Before this day.")


class HealthDayViewSet(TeamRows[HealthDay]):
    """What went wrong on each machine on each day. A day on which it was off and nothing happened has no row."""

    queryset = HealthDay.objects.select_related("instance__team")
    serializer_class = HealthDaySerializer
    filterset_class = HealthDayFilter
    team_path = "instance__team"
    orderings = ("-day", "score", "id")
