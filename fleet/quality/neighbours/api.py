"""Evidence of other tenants, over the API."""

from __future__ import annotations

from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.quality.models import NeighbourEvidence
from fleet.quality.neighbours.words import reason_text
from fleet.rest.filters import IdsFilter, MomentFilter, WholeFilter
from fleet.teams.scoping import TeamRows

EXAMPLE = {
    "id": 8120,
    "team": "acme",
    "instance": 17,
    "hour": "2026-11-30T07:00:00Z",
    "score": 77,
    "reasons": [
        {"code": "cpu_pressure", "before": 0.0, "now": 16.5, "words": "programs waited for a core 17% of the time, usually 0%"},
        {"code": "disk_latency", "before": 0.0004, "now": 0.0096, "words": "a disk answered after 9.60 ms, usually 0.40 ms"},
    ],
}  # fmt: skip


class SignSerializer(serializers.Serializer[dict[str, object]]):
    code = serializers.CharField(help_text="Of the sign: see docs/quality.md.")
    before = serializers.FloatField(help_text="In its calm hours: percent, seconds, MHz or bytes a second.")
    now = serializers.FloatField()
    words = serializers.SerializerMethodField(help_text="In the language asked for.")

    @extend_schema_field({"type": "string"})
    def get_words(self, reason: dict[str, object]) -> str:
        return reason_text(reason)


@extend_schema_serializer(examples=[OpenApiExample("an hour", EXAMPLE)])
class NeighbourEvidenceSerializer(serializers.ModelSerializer[NeighbourEvidence]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    hour = serializers.DateTimeField(help_text="Where the hour begins.")
    score = serializers.IntegerField(
        help_text="0: judged, and nothing found; up to 100. An hour without a row was not judged."
    )
    reasons = SignSerializer(many=True)

    class Meta:
        model = NeighbourEvidence
        fields = list(EXAMPLE)


class NeighbourEvidenceFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    since = MomentFilter("hour", "gte", help_text="Hours that begin at or after this time.")
    until = MomentFilter("hour", "lt", help_text="Hours that begin before this time.")
    at_least = WholeFilter("score", "gte", low=0, high=100, help_text="Of this score or more; 40 is much.")


class NeighbourEvidenceViewSet(TeamRows[NeighbourEvidence]):
    """How much other tenants of a shared host seem to take from a machine, hour by hour, with the signs. Evidence, no proof."""

    queryset = NeighbourEvidence.objects.select_related("instance__team")
    serializer_class = NeighbourEvidenceSerializer
    filterset_class = NeighbourEvidenceFilter
    team_path = "instance__team"
    orderings = ("-hour", "-score", "id")
