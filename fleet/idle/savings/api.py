"""What stopping saved, over the API."""

from __future__ import annotations

from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.idle.shutdown.models import IdleSaving
from fleet.rest.filters import IdsFilter, MomentFilter
from fleet.teams.scoping import TeamRows

EXAMPLE = {
    "id": 5,
    "team": "acme",
    "instance": 17,
    "stop": 12,
    "planned_action": None,
    "since": "2026-11-30T08:31:02Z",
    "until": None,
    "counted_until": "2026-11-30T10:00:00Z",
    "most_until": "2026-12-07T08:31:02Z",
    "gpu_count": 8,
    "price_per_hour": "32.272600",
    "currency": "USD",
    "amount": "47.848416",
}


@extend_schema_serializer(examples=[OpenApiExample("saving", EXAMPLE)])
class IdleSavingSerializer(serializers.ModelSerializer[IdleSaving]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    stop = serializers.IntegerField(source="stop_id", allow_null=True, help_text="The idle stop that it is of.")
    planned_action = serializers.IntegerField(
        source="planned_action_id", allow_null=True, help_text="Else the planned action that it is of."
    )
    until = serializers.DateTimeField(allow_null=True, help_text="When it ended; null: it still grows.")
    most_until = serializers.DateTimeField(help_text="It grows no longer than a week.")
    price_per_hour = serializers.DecimalField(
        max_digits=14, decimal_places=6, allow_null=True,
        help_text="Less what the stopped machine goes on to cost. Null: one of the two is not known, and nothing is counted.",
    )  # fmt: skip

    class Meta:
        model = IdleSaving
        fields = list(EXAMPLE)


class IdleSavingFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    since = MomentFilter("since", "gte", help_text="Booked from this time on.")
    until = MomentFilter("since", "lt", help_text="Booked before this time.")


class IdleSavingViewSet(TeamRows[IdleSaving]):
    """What machines did not cost because they were stopped, from the time that their providers proved."""

    queryset = IdleSaving.objects.select_related("team")
    serializer_class = IdleSavingSerializer
    filterset_class = IdleSavingFilter
    orderings = ("-since", "id")
