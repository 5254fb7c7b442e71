"""What providers themselves say of machines, over the API."""

from __future__ import annotations

from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.inventory.provider_word.models import ProviderNotice, ProviderUsage
from fleet.providers.base import NoticeKind
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter, words
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


NOTICE_EXAMPLE = {
    "id": 12,
    "team": "acme",
    "account": 2,
    "instance": 17,
    "kind": "maintenance",
    "key": "instance-event-0d59937288b749b32",
    "starts_at": "2026-12-03T04:00:00Z",
    "detail": "The instance is scheduled for a reboot",
    "first_seen_at": "2026-11-30T08:00:02Z",
    "last_seen_at": "2026-11-30T09:00:02Z",
    "gone_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("provider notice", NOTICE_EXAMPLE)])
class ProviderNoticeSerializer(serializers.ModelSerializer[ProviderNotice]):
    team = serializers.CharField(source="account.team.slug", help_text="Its address (slug).")

    class Meta:
        model = ProviderNotice
        fields = list(NOTICE_EXAMPLE)


class ProviderNoticeFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    kind = WordsFilter(choices=words(NoticeKind), help_text="Kinds, separated by commas.")
    gone = FlagFilter("gone_at", "isnull", exclude=True, help_text="Whether the provider stopped listing it.")


class ProviderNoticeViewSet(TeamRows[ProviderNotice]):
    """What providers announced for machines: interruptions, maintenance, retirements, debts. Kept 90 days after they end."""

    queryset = ProviderNotice.objects.select_related("account__team").defer("account__credentials")
    serializer_class = ProviderNoticeSerializer
    filterset_class = ProviderNoticeFilter
    team_path = "account__team"
    orderings = ("-first_seen_at", "id")
