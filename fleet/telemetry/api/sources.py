"""The team's own Prometheus servers over the API, and which machines their labels stand for. A token goes in and never comes out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.models import Instance
from fleet.rest.bodies import Body, naming_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows
from fleet.telemetry.scrape.words import failure_text
from fleet.telemetry.sources.manage import (
    HISTORY_CHOICES_HOURS,
    INTERVAL_CHOICES_SECONDS,
    SourceError,
    SourceWords,
    add_source,
    choose_machine,
    remove_source,
    update_source,
)
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine

INTERVALS = [(seconds, seconds) for seconds in INTERVAL_CHOICES_SECONDS]
SOURCE_EXAMPLE = {
    "id": 3,
    "team": "acme",
    "name": "Cluster A",
    "url": "https://prometheus.example",
    "tenant": "",
    "selector": 'cluster="a"',
    "gpu_label": "Hostname",
    "host_label": "instance",
    "adds_machines": False,
    "interval_seconds": 30,
    "enabled": True,
    "has_token": True,
    "created_at": "2026-11-29T18:02:00Z",
    "read_until": "2026-11-30T08:00:05Z",
    "last_ok_at": "2026-11-30T08:00:05Z",
    "failed_at": None,
    "failures": 0,
    "error": "",
    "failure": "",
}
LABEL_EXAMPLE = {
    "id": 12,
    "team": "acme",
    "source": 3,
    "label": "node-1",
    "instance": 17,
    "chosen": False,
    "last_at": "2026-11-30T08:00:05Z",
    "sample_seconds": 15,
}


@extend_schema_serializer(examples=[OpenApiExample("source", SOURCE_EXAMPLE)])
class SourceSerializer(serializers.ModelSerializer[PrometheusSource]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    has_token = serializers.SerializerMethodField(help_text="Whether a bearer token is kept; it is never answered.")
    read_until = serializers.DateTimeField(help_text="Samples before this time are stored.")
    error = serializers.CharField(help_text="A code; empty while it is read.")
    failure = serializers.SerializerMethodField(help_text="The error in words, in the language asked for.")

    class Meta:
        model = PrometheusSource
        fields = list(SOURCE_EXAMPLE)

    @extend_schema_field({"type": "boolean"})
    def get_has_token(self, source: PrometheusSource) -> bool:
        return bool(source.token)

    @extend_schema_field({"type": "string"})
    def get_failure(self, source: PrometheusSource) -> str:
        return failure_text(source)


class SourceFields(Body[dict[str, Any]]):
    name = serializers.CharField(max_length=80, help_text="What the team calls it.")
    url = serializers.CharField(max_length=500, help_text="What stands before /api/v1/query, as the workers reach it.")
    tenant = serializers.CharField(
        max_length=150, required=False, allow_blank=True, help_text="Sent as X-Scope-OrgID to Mimir and Thanos."
    )
    selector = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text='Matchers as in PromQL: cluster="a".'
    )
    gpu_label = serializers.CharField(max_length=80, required=False, help_text="Names the machine of GPU series.")
    host_label = serializers.CharField(max_length=80, required=False, help_text="Names the machine of host series.")
    adds_machines = serializers.BooleanField(
        required=False, help_text="Whether a label that is no machine of yours becomes one."
    )
    interval_seconds = serializers.ChoiceField(
        choices=INTERVALS, required=False, help_text="How often it is read; 30 unless told."
    )
    token = serializers.CharField(
        max_length=2000,
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        write_only=True,
        help_text="A bearer token that it asks for; kept encrypted. Empty for none.",
    )


@extend_schema_serializer(
    examples=[OpenApiExample("source", {"name": "Cluster A", "url": "https://prometheus.example", "history_hours": 24})]
)
class NewSource(SourceFields):
    history_hours = serializers.ChoiceField(
        choices=HISTORY_CHOICES_HOURS, required=False, help_text="How much of its past is read first; 0 unless told."
    )


@extend_schema_serializer(examples=[OpenApiExample("less often", {"interval_seconds": 60})])
class SourceChanges(SourceFields):
    """Only what is to change. A token that is kept does not follow to another address: send it with the new `url`."""

    name = serializers.CharField(max_length=80, required=False, help_text="What the team calls it.")
    url = serializers.CharField(max_length=500, required=False, help_text="What stands before /api/v1/query.")
    enabled = serializers.BooleanField(required=False, help_text="Whether it is read.")


class SourceFilter(django_filters.FilterSet):
    enabled = FlagFilter(help_text="Whether it is read.")
    failing = FlagFilter(method="filter_failing", help_text="Whether the last reading failed.")

    def filter_failing(self, sources: QuerySet[PrometheusSource], name: str, value: bool) -> QuerySet[PrometheusSource]:
        return sources.exclude(error="") if value else sources.filter(error="")


class SourceViewSet(WritableRows[PrometheusSource]):
    """The team's own Prometheus servers (or Thanos, Mimir, VictoriaMetrics), and how each fares. docs/scraping.md says what is read of them."""

    queryset = PrometheusSource.objects.select_related("team")
    serializer_class = SourceSerializer
    filterset_class = SourceFilter
    orderings = ("id", "name", "created_at", "last_ok_at")
    bodies = {"create": NewSource, "partial_update": SourceChanges}

    def create(self, request: Request) -> Response:
        """Adds a server. It is read within seconds; the row says how that went. Name the team with `?team=` where you are in several."""
        asked = self.body(request)
        apart = {name: asked.pop(name) for name in ("token", "history_hours") if name in asked}
        team = one_team(request, role=Role.OPERATOR)
        with naming_fields(SourceError):
            source = add_source(actor=self.actor(request), team=team, words=SourceWords(**asked), **apart)
        return self.answer(source, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest. A reading that is under way is thrown away."""
        source, asked = self.get_object(), self.body(request)
        token, enabled = asked.pop("token", None), asked.pop("enabled", source.enabled)
        kept = {one.name: getattr(source, one.name) for one in fields(SourceWords)}
        with naming_fields(SourceError):
            source = update_source(
                actor=self.actor(request),
                source=source,
                words=SourceWords(**{**kept, **asked}),
                enabled=enabled,
                token=token,
            )
        return self.answer(source)

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes a server. What it gave stays."""
        remove_source(actor=self.actor(request), source=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_serializer(examples=[OpenApiExample("label", LABEL_EXAMPLE)])
class SourceLabelSerializer(serializers.ModelSerializer[SourceMachine]):
    team = serializers.CharField(source="source.team.slug", help_text="Its address (slug).")

    class Meta:
        model = SourceMachine
        fields = list(LABEL_EXAMPLE)
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "source": {"help_text": "The id of the server that has it."},
            "instance": {"help_text": "The id of the machine that it stands for; null: none."},
            "chosen": {"help_text": "Whether somebody said so; then nothing is matched by name."},
            "sample_seconds": {"help_text": "Between two of its samples; 0: not known yet."},
        }


@extend_schema_serializer(examples=[OpenApiExample("its machine", {"instance": 17})])
class LabelChoice(Body[dict[str, Any]]):
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, allow_null=True, help_text="The id of the machine; null: no machine of ours."
    )


class SourceLabelFilter(django_filters.FilterSet):
    source = IdsFilter(help_text="Ids of servers, separated by commas.")
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    matched = FlagFilter(method="filter_matched", help_text="Whether it stands for a machine.")

    def filter_matched(self, rows: QuerySet[SourceMachine], name: str, value: bool) -> QuerySet[SourceMachine]:
        return rows.filter(instance__isnull=not value)


class SourceLabelViewSet(WritableRows[SourceMachine]):
    """What the labels of the team's Prometheus servers stand for: matched by name, unless a person or a call chose."""

    http_method_names = ["get", "patch", "head"]
    queryset = SourceMachine.objects.select_related("source__team")
    serializer_class = SourceLabelSerializer
    filterset_class = SourceLabelFilter
    team_path = "source__team"
    orderings = ("id", "label", "last_at")
    bodies = {"partial_update": LabelChoice}

    def partial_update(self, request: Request, pk: str) -> Response:
        """Says which machine a label is. New samples go there; nothing is matched by its name again."""
        row, asked = self.get_object(), self.body(request)
        machines = Instance.objects.filter(team=row.source.team_id)
        machine = machines.filter(pk=asked["instance"]).first() if asked["instance"] else None
        if asked["instance"] and machine is None:
            raise ValidationError({"instance": _("Choose a machine of this team.")})
        with naming_fields(SourceError):
            row = choose_machine(actor=self.actor(request), row=row, instance=machine)
        return self.answer(row)
