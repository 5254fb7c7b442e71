"""What providers themselves say of machines, over the API."""

from __future__ import annotations

from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.inventory.provider_word.models import ProviderUsage
from fleet.rest.filters import IdsFilter, MomentFilter
from fleet.teams.scoping import TeamRows

USAGE_EXAMPLE = {
    "id": 900,
    "team": "acme",
    "instance": 17,
    "provider": "runpod",
    "source": "provider",
    "at": "2026-11-30T08:00:02Z",
    "gpu_utilization_percent": [97.0, None],
    "gpu_memory_percent": [61.0, 60.0],
    "cpu_percent": 34.0,
    "memory_percent": 22.0,
    "network_received_bytes_per_s": 1250000.0,
    "network_sent_bytes_per_s": None,
    "disk_read_bytes_per_s": None,
    "disk_written_bytes_per_s": None,
}


def per_gpu() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="One for each GPU; empty: the provider does not say."
    )


@extend_schema_serializer(examples=[OpenApiExample("provider usage", USAGE_EXAMPLE)])
class ProviderUsageSerializer(serializers.ModelSerializer[ProviderUsage]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    provider = serializers.CharField(source="instance.account.kind")
    gpu_utilization_percent = per_gpu()
    gpu_memory_percent = per_gpu()

    class Meta:
        model = ProviderUsage
        fields = list(USAGE_EXAMPLE)


class ProviderUsageFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    provider = django_filters.CharFilter("instance__account__kind", help_text="e.g. runpod.")
    since = MomentFilter("at", "gte", help_text="Measured at or after this time.")
    until = MomentFilter("at", "lt", help_text="Measured before this time.")


class ProviderUsageViewSet(TeamRows[ProviderUsage]):
    """Use as providers measured it, at most one row for a machine and five minutes; kept 7 days. It never decides that a machine is idle."""

    queryset = ProviderUsage.objects.select_related("instance__team", "instance__account").defer(
        "instance__account__credentials"
    )
    serializer_class = ProviderUsageSerializer
    filterset_class = ProviderUsageFilter
    team_path = "instance__team"
    orderings = ("-at", "id")
