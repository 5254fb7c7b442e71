"""Machines and their GPUs over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from fleet.inventory.api.records import HoldSerializer
from fleet.inventory.machines import keep_alive
from fleet.inventory.models import GPU, Instance
from fleet.providers.base import Billing, InstanceState, Market, Tenancy
from fleet.rest.bodies import Body
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter, words
from fleet.teams.models import APIToken
from fleet.teams.scoping import TeamRows
from fleet.teams.throttles import WriteThrottle
from fleet.teams.writing import WritableRows

INSTANCE_STATES = words(InstanceState)
BILLINGS = words(Billing)
MARKETS = words(Market)
TENANCIES = words(Tenancy)

# A run that says nothing for a day is not one that says that it is alive.
LONGEST_HEARTBEAT_MINUTES = 24 * 60

INSTANCE_EXAMPLE = {
    "id": 17,
    "team": "acme",
    "account": 2,
    "provider": "aws",
    "external_id": "i-0abcd1234ef567890",
    "region": "us-east-1",
    "name": "train-01",
    "state": "running",
    "raw_state": "running",
    "state_reason": "",
    "state_since": "2026-11-29T18:00:00Z",
    "billing": "full",
    "market": "on_demand",
    "tenancy": "dedicated_host",
    "exclusive": True,
    "instance_type": "p4d.24xlarge",
    "gpu_model": "A100-SXM4-40GB",
    "gpu_count": 8,
    "gpu_memory_mib": 40960,
    "host_share": "1.00000",
    "vcpus": 96,
    "ram_mib": 1179648,
    "disk_gb": 8000,
    "price_per_hour": "32.772600",
    "storage_price_per_hour": "0.109589",
    "currency": "USD",
    "priced_at": "2026-11-30T08:00:02Z",
    "image": 4,
    "image_name": "train-cuda-13",
    "ssh": [{"host": "198.51.100.20", "port": 22, "user": "ubuntu", "kind": "direct"}],
    "provider_created_at": "2026-11-20T10:00:00Z",
    "started_at": "2026-11-29T18:00:00Z",
    "provider_stopped_at": None,
    "expires_at": None,
    "managed": True,
    "owner": "bob",
    "project": "vision",
    "labels": {"purpose": "pretraining"},
    "provider_labels": {"Name": "train-01"},
    "first_seen_at": "2026-11-20T10:00:31Z",
    "last_seen_at": "2026-11-30T08:00:02Z",
    "gone_at": None,
}


class SshSerializer(serializers.Serializer[dict[str, Any]]):
    host = serializers.CharField()
    port = serializers.IntegerField()
    user = serializers.CharField()
    kind = serializers.CharField(help_text="direct or proxy.")


@extend_schema_serializer(examples=[OpenApiExample("machine", INSTANCE_EXAMPLE)])
class InstanceSerializer(serializers.ModelSerializer[Instance]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    provider = serializers.CharField(source="account.kind")
    exclusive = serializers.BooleanField(
        source="is_exclusive", allow_null=True, help_text="The plain word for tenancy; null where it is not known."
    )
    price_per_hour = serializers.DecimalField(
        max_digits=14,
        decimal_places=6,
        allow_null=True,
        help_text="Of the whole machine, in `currency`; null = not known, which is not free.",
    )
    ssh = SshSerializer(many=True)
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    labels = serializers.DictField(child=serializers.CharField(), help_text="As people set them.")
    provider_labels = serializers.DictField(child=serializers.CharField(), help_text="As the provider lists them.")

    class Meta:
        model = Instance
        fields = list(INSTANCE_EXAMPLE)


class InstanceFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    provider = django_filters.CharFilter("account__kind", help_text="e.g. aws.")
    state = WordsFilter(choices=INSTANCE_STATES, help_text="States, separated by commas.")
    billing = WordsFilter(choices=BILLINGS, help_text="What the provider charges now, separated by commas.")
    market = WordsFilter(choices=MARKETS, help_text="Markets, separated by commas.")
    tenancy = WordsFilter(choices=TENANCIES, help_text="Tenancies, separated by commas.")
    exclusive = FlagFilter(
        method="filter_exclusive", help_text="Whether the host is ours alone; unknown tenancies match neither."
    )
    region = django_filters.CharFilter(help_text="As the provider names it.")
    gpu_model = django_filters.CharFilter(lookup_expr="iexact", help_text="The whole name, in any case.")
    managed = FlagFilter(help_text="Whether somebody registered it; others are never touched.")
    owner = django_filters.CharFilter("owner__username", help_text="A user name.")
    project = django_filters.CharFilter(method="filter_project", help_text="Slug of a project, or `none`.")
    label = django_filters.CharFilter(method="filter_label", help_text="`key:value`, or `key` for any value.")
    gone = django_filters.ChoiceFilter(
        choices=[("true", "true"), ("false", "false"), ("any", "any")],
        method="filter_gone",
        help_text="Machines that the provider no longer lists: `false` (default), `true`, or `any`.",
    )
    search = django_filters.CharFilter(method="filter_search", help_text="A part of name, provider id or GPU model.")
    started_since = MomentFilter("started_at", "gte", help_text="Started at or after this time.")
    started_until = MomentFilter("started_at", "lt", help_text="Started before this time.")

    def filter_queryset(self, queryset: QuerySet[Instance]) -> QuerySet[Instance]:
        present = queryset if self.form.cleaned_data["gone"] else queryset.filter(gone_at=None)
        found: QuerySet[Instance] = super().filter_queryset(present)
        return found

    def filter_gone(self, machines: QuerySet[Instance], name: str, value: str) -> QuerySet[Instance]:
        return machines if value == "any" else machines.filter(gone_at__isnull=value == "false")

    def filter_exclusive(self, machines: QuerySet[Instance], name: str, value: bool) -> QuerySet[Instance]:
        return machines.filter(tenancy__in=[word for word in Tenancy if word.is_exclusive is value])

    def filter_project(self, machines: QuerySet[Instance], name: str, value: str) -> QuerySet[Instance]:
        return machines.filter(project=None) if value == "none" else machines.filter(project__slug=value)

    def filter_label(self, machines: QuerySet[Instance], name: str, value: str) -> QuerySet[Instance]:
        key, colon, wanted = value.partition(":")
        if not key:
            raise ValidationError({"label": _("Write it as key:value, or as key for any value.")})
        return machines.filter(labels__contains={key: wanted}) if colon else machines.filter(labels__has_key=key)

    def filter_search(self, machines: QuerySet[Instance], name: str, value: str) -> QuerySet[Instance]:
        fields = ("name", "external_id", "gpu_model")
        return machines.filter(Q.create([(f"{field}__icontains", value) for field in fields], connector=Q.OR))


@extend_schema_serializer(examples=[OpenApiExample("heartbeat", {"minutes": 5, "reason": "pretraining, run 7"})])
class HeartbeatBody(Body[dict[str, Any]]):
    minutes = serializers.IntegerField(
        min_value=1, max_value=LONGEST_HEARTBEAT_MINUTES, help_text="For how long from now; send it again before."
    )
    reason = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="What runs.")


class InstanceViewSet(WritableRows[Instance]):
    """Rented machines, as their providers list them and as people described them."""

    http_method_names = ["get", "post", "head"]
    bodies = {"heartbeat": HeartbeatBody}
    answers = {"heartbeat": (status.HTTP_200_OK, HoldSerializer)}
    queryset = Instance.objects.select_related("team", "account", "owner", "project").defer("account__credentials")
    serializer_class = InstanceSerializer
    filterset_class = InstanceFilter
    orderings = ("id", "name", "price_per_hour", "started_at", "state_since", "last_seen_at")

    def get_throttles(self) -> list[BaseThrottle]:
        """Runs say each minute that they are alive, many with one token: they are counted with what is read."""
        throttles = super().get_throttles()
        if self.action != "heartbeat":
            return throttles
        return [throttle for throttle in throttles if not isinstance(throttle, WriteThrottle)]

    @action(detail=True, methods=["post"])
    def heartbeat(self, request: Request, pk: str) -> Response:
        """A run says that it is alive: the machine is not stopped as idle for so many minutes. Sent again it lasts longer, never shorter."""
        instance, asked, now = self.get_object(), self.body(request), timezone.now()
        hold = keep_alive(
            actor=self.actor(request),
            instance=instance,
            until=now + timedelta(minutes=asked["minutes"]),
            reason=asked["reason"],
            token=request.auth if isinstance(request.auth, APIToken) else None,
            now=now,
        )
        return Response(HoldSerializer(hold).data)


GPU_EXAMPLE = {
    "id": 41,
    "team": "acme",
    "instance": 17,
    "index": 0,
    "uuid": "GPU-6f2c1a52-0f4b-7c1d-9a3e-2b5d8c7e1f00",
    "name": "NVIDIA A100-SXM4-40GB",
    "memory_total_bytes": 42949672960,
    "pci_bus_id": "00000000:10:1C.0",
    "mig_parent_uuid": "",
    "mig_profile": "",
    "first_seen_at": "2026-11-20T10:02:00Z",
    "removed_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("GPU", GPU_EXAMPLE)])
class GPUSerializer(serializers.ModelSerializer[GPU]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")

    class Meta:
        model = GPU
        fields = list(GPU_EXAMPLE)


class GPUFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    uuid = django_filters.CharFilter(help_text="As NVML gives it.")
    mig = FlagFilter(method="filter_mig", help_text="MIG instances (true) or whole GPUs (false).")
    removed = FlagFilter(
        "removed_at", "isnull", exclude=True, help_text="Whether the agent's inventory stopped naming it."
    )

    def filter_mig(self, gpus: QuerySet[GPU], name: str, value: bool) -> QuerySet[GPU]:
        return gpus.exclude(mig_parent_uuid="") if value else gpus.filter(mig_parent_uuid="")


class GPUViewSet(TeamRows[GPU]):
    """GPUs and MIG instances that agents reported. The pair of machine and UUID is the identity."""

    queryset = GPU.objects.select_related("instance__team")
    serializer_class = GPUSerializer
    filterset_class = GPUFilter
    team_path = "instance__team"
    orderings = ("id", "first_seen_at")
