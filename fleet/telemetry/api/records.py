"""Agents and what happened on machines, over the API."""

from __future__ import annotations

from django.db.models import QuerySet
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WholeFilter
from fleet.teams.scoping import TeamRows
from fleet.telemetry.ingest.bundle import shipped_version
from fleet.telemetry.models import Agent, MachineEvent

AGENT_EXAMPLE = {
    "id": 6,
    "team": "acme",
    "instance": 17,
    "version": "0.1.0",
    "shipped_version": "0.1.0",
    "hostname": "train-01",
    "provider_ids": {"aws_instance_id": "i-0abcd1234ef567890"},
    "match_conflict": "",
    "enrolled_at": "2026-11-20T10:02:00Z",
    "revoked_at": None,
    "heartbeat_at": "2026-11-30T08:00:02Z",
    "batch_at": "2026-11-30T08:00:10Z",
    "clock_skew_seconds": 0.2,
    "nvml_state": "ok",
    "nvml_detail": "",
    "nvml_since": "2026-11-29T18:02:00Z",
    "queued_batches": 0,
    "oldest_queued_at": None,
    "lost_batches": 0,
    "dropped_values": {"utilization_percent": 3},
    "cpu_percent": 0.2,
    "memory_bytes": 31457280,
    "interval_seconds": 5,
    "report_seconds": 10,
    "paused": False,
}


@extend_schema_serializer(examples=[OpenApiExample("agent", AGENT_EXAMPLE)])
class AgentSerializer(serializers.ModelSerializer[Agent]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    shipped_version = serializers.SerializerMethodField(
        help_text="What this dashboard hands out; an agent of another version works, and may lack readings."
    )
    provider_ids = serializers.DictField(help_text="As the agent found them; they never merge machines by themselves.")
    match_conflict = serializers.CharField(help_text="Why its provider ids were not matched to a listed machine.")
    clock_skew_seconds = serializers.FloatField(
        allow_null=True, help_text="How far the server's clock is ahead of the machine's."
    )
    dropped_values = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Field -> how many values lay outside their physical range and were dropped.",
    )

    class Meta:
        model = Agent
        fields = list(AGENT_EXAMPLE)

    def get_shipped_version(self, agent: Agent) -> str:
        return shipped_version()


class AgentFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    version = django_filters.CharFilter(help_text="The whole version.")
    nvml_state = django_filters.CharFilter(help_text="ok, absent, hung, mismatch, error or paused.")
    paused = FlagFilter(help_text="Whether it was told to pause.")
    revoked = FlagFilter("revoked_at", "isnull", exclude=True, help_text="Whether its token was revoked.")
    conflict = FlagFilter(method="filter_conflict", help_text="Whether its match waits for a person.")
    silent_since = MomentFilter("heartbeat_at", "lt", help_text="Not heard of at or after this time.")

    def filter_conflict(self, agents: QuerySet[Agent], name: str, value: bool) -> QuerySet[Agent]:
        return agents.exclude(match_conflict="") if value else agents.filter(match_conflict="")


class AgentViewSet(TeamRows[Agent]):
    """The agents of machines: versions, clocks, queues, and the values that were refused."""

    queryset = Agent.objects.select_related("instance__team")
    serializer_class = AgentSerializer
    filterset_class = AgentFilter
    team_path = "instance__team"
    orderings = ("id", "enrolled_at", "heartbeat_at")


EVENT_EXAMPLE = {
    "id": 77,
    "team": "acme",
    "instance": 17,
    "gpu": 41,
    "at": "2026-11-30T07:41:12.500000Z",
    "received_at": "2026-11-30T07:41:20Z",
    "kind": "xid",
    "code": 79,
    "detail": "GPU has fallen off the bus",
}


@extend_schema_serializer(examples=[OpenApiExample("event", EVENT_EXAMPLE)])
class EventSerializer(serializers.ModelSerializer[MachineEvent]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")

    class Meta:
        model = MachineEvent
        fields = list(EVENT_EXAMPLE)


class EventFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    gpu = IdsFilter(help_text="Ids of GPUs, separated by commas.")
    kind = django_filters.CharFilter(help_text="e.g. xid; docs/agent-protocol.md has the list.")
    code = WholeFilter(help_text="e.g. 79 of an XID.")
    since = MomentFilter("at", "gte", help_text="At or after this time.")
    until = MomentFilter("at", "lt", help_text="Before this time.")


class EventViewSet(TeamRows[MachineEvent]):
    """What happened on machines at one moment: XIDs, lost GPUs, hung drivers, restarts of agents."""

    queryset = MachineEvent.objects.select_related("instance__team")
    serializer_class = EventSerializer
    filterset_class = EventFilter
    team_path = "instance__team"
    orderings = ("-at", "id")
