"""What machines do now, over the API: the newest readings, the state of each GPU, and the readings that decided it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.api.machines import INSTANCE_STATES, InstanceFilter
from fleet.inventory.models import Instance
from fleet.rest.filters import words
from fleet.states import GpuState
from fleet.teams.scoping import TeamRows
from fleet.telemetry.api.examples import GPU_NOW_EXAMPLE, MACHINE_NOW_EXAMPLE
from fleet.telemetry.latest import GpuNow, machines_now
from fleet.telemetry.models import Agent, GpuLatest, GpuReading, HostLatest, HostReading

GPU_STATES = words(GpuState)
GPU_COLUMNS = [field.name for field in GpuReading._meta.get_fields()]
HOST_COLUMNS = [field.name for field in HostReading._meta.get_fields()]

BECAUSE = {
    "type": "object",
    "additionalProperties": {"type": ["number", "string"]},
    "description": "The readings that decided the state; `reason` says why it is unknown: lost, no_report, silent, "
    "not_read or memory_not_read.",
}


@extend_schema_field({"type": "number"})
class AgeField(serializers.Field[datetime, Any, float, Any]):
    """Seconds since a time of the row; null where there is none."""

    def to_representation(self, value: datetime) -> float:
        now: datetime = self.context["now"]
        return round((now - value) / timedelta(seconds=1), 3)


class GpuReadingSerializer(serializers.ModelSerializer[GpuLatest]):
    age_seconds = AgeField(source="sampled_at")
    health = serializers.DictField(help_text="Error counters, remapped rows, and why readings are absent.")
    processes = serializers.ListField(child=serializers.DictField(), help_text="Of the agent's own PID namespace.")

    class Meta:
        model = GpuLatest
        fields = [
            *("sampled_at", "received_at", "age_seconds", *GPU_COLUMNS, "memory_total_bytes"),
            *("lost", "busy_at", "idle_since", "health", "processes"),
        ]


class HostReadingSerializer(serializers.ModelSerializer[HostLatest]):
    age_seconds = AgeField(source="sampled_at")
    detail = serializers.DictField(help_text="Disks, interfaces, file systems, cgroup and sessions.")

    class Meta:
        model = HostLatest
        fields = [
            *("sampled_at", "received_at", "age_seconds", *HOST_COLUMNS),
            *("memory_total_bytes", "filesystem_total_bytes", "cpu_limit_cores", "detail"),
        ]


class AgentNowSerializer(serializers.ModelSerializer[Agent]):
    age_seconds = AgeField(source="heartbeat_at", allow_null=True, help_text="Since the last heartbeat.")

    class Meta:
        model = Agent
        fields = ["id", "version", "heartbeat_at", "age_seconds", "nvml_state", "nvml_detail", "paused"]


@extend_schema_serializer(examples=[OpenApiExample("GPU", GPU_NOW_EXAMPLE)])
class GpuNowSerializer(serializers.Serializer[GpuNow]):
    gpu = serializers.IntegerField(
        source="gpu.pk", allow_null=True, help_text="Null: paid for, and no agent has reported it."
    )
    index = serializers.IntegerField(source="gpu.index")
    uuid = serializers.CharField(source="gpu.uuid")
    name = serializers.CharField(source="gpu.name")
    state = serializers.ChoiceField(source="verdict.state", choices=GPU_STATES)
    because = serializers.SerializerMethodField()
    reading = GpuReadingSerializer(source="latest", allow_null=True, help_text="Null: nothing was ever read.")

    @extend_schema_field(BECAUSE)
    def get_because(self, tile: GpuNow) -> dict[str, float | str]:
        return dict(tile.verdict.because)


@extend_schema_serializer(examples=[OpenApiExample("machine", MACHINE_NOW_EXAMPLE)])
class MachineNowSerializer(serializers.Serializer[Any]):
    instance = serializers.IntegerField(source="instance.pk")
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    name = serializers.CharField(source="instance.name")
    instance_state = serializers.ChoiceField(source="instance.state", choices=INSTANCE_STATES)
    state = serializers.ChoiceField(choices=GPU_STATES, help_text="The state of its GPUs to hear of first.")
    gpus = GpuNowSerializer(many=True)
    host = HostReadingSerializer(allow_null=True, help_text="Null: nothing was ever read.")
    agent = AgentNowSerializer(allow_null=True, help_text="Null: no agent has enrolled.")


class LatestViewSet(TeamRows[Instance]):
    """The newest reading of every machine, its GPUs and its agent. The id is the machine's; filters are those of instances.

    A reading that was not made is null, never 0; `age_seconds` says how old a reading is.
    """

    queryset = Instance.objects.select_related("team").order_by()
    serializer_class = MachineNowSerializer
    filterset_class = InstanceFilter
    orderings = ("id", "name", "state_since")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self._described(page or ()))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(self._described([self.get_object()])[0])

    def _described(self, machines: Sequence[Instance]) -> Any:
        now = timezone.now()
        context = {**self.get_serializer_context(), "now": now}
        return MachineNowSerializer(machines_now(machines, now=now), many=True, context=context).data
