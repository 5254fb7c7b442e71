"""Serving endpoints over the API: what they say now, when they last had a request, and their figures over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.models import Instance
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter
from fleet.rest.parameters import ids_of, moment_of, number_of, words_of
from fleet.teams.scoping import ApiView, TeamRows
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle
from fleet.telemetry.api.samples import (
    DEFAULT_POINTS,
    DEFAULT_SPAN,
    MAX_IDS,
    MAX_POINTS,
    check_kept,
    check_size,
    check_span,
    ids_parameter,
    span_parameters,
    team_ids,
    values_field,
    visible,
)
from fleet.telemetry.rollups.columns import RESOLUTIONS
from fleet.telemetry.serving.models import ServingLatest
from fleet.telemetry.serving.series import FIELDS, serving_series

DEFAULTS = ("requests_per_second", "generation_tokens_per_second", "requests_running", "requests_waiting")
ENDPOINT_EXAMPLE = {
    "id": 5,
    "team": "acme",
    "instance": 17,
    "engine": "vllm",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "port": 8000,
    "first_seen_at": "2026-11-20T10:05:00Z",
    "sampled_at": "2026-11-30T08:00:05Z",
    "received_at": "2026-11-30T08:00:10Z",
    "last_request_at": "2026-11-30T08:00:05Z",
    "interval_seconds": 10.002,
    "requests_running": 3.0,
    "requests_waiting": 0.0,
    "kv_cache_ratio": 0.42,
    "requests_finished": 12,
    "requests_failed": 0,
    "prompt_tokens": 5210,
    "generation_tokens": 2044,
    "ttft_seconds_sum": 1.31,
    "ttft_count": 12,
    "ttft_seconds_p50": 0.09,
    "ttft_seconds_p95": 0.21,
    "tpot_seconds_sum": 31.4,
    "tpot_count": 2044,
    "tpot_seconds_p50": 0.015,
    "tpot_seconds_p95": 0.022,
    "e2e_seconds_sum": 34.9,
    "e2e_count": 12,
    "e2e_seconds_p50": 2.7,
    "e2e_seconds_p95": 4.6,
}


@extend_schema_serializer(examples=[OpenApiExample("endpoint", ENDPOINT_EXAMPLE)])
class ServingSerializer(serializers.ModelSerializer[ServingLatest]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    engine = serializers.CharField(help_text="vllm, tgi, trtllm, triton, or what another engine calls itself.")
    model = serializers.CharField(help_text="Empty where the engine does not say it.")

    class Meta:
        model = ServingLatest
        fields = list(ENDPOINT_EXAMPLE)


class ServingFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    engine = django_filters.CharFilter(help_text="e.g. vllm.")
    model = django_filters.CharFilter(help_text="As the engine calls it.")
    requested_since = MomentFilter("last_request_at", "gte", help_text="With a request at or after this time.")
    never_requested = FlagFilter("last_request_at", "isnull", help_text="Whether no request was ever seen.")


class ServingViewSet(TeamRows[ServingLatest]):
    """What serving engines say now: one row for each model of each engine on each machine. Counts are growth over `interval_seconds`.

    `last_request_at` is the last reading in which a request ran, waited or ended.
    """

    queryset = ServingLatest.objects.select_related("instance__team")
    serializer_class = ServingSerializer
    filterset_class = ServingFilter
    team_path = "instance__team"
    orderings = ("id", "sampled_at", "last_request_at")


SERIES_EXAMPLE: dict[str, Any] = {
    "since": "2026-11-30T07:00:00Z",
    "until": "2026-11-30T08:00:00Z",
    "bucket_seconds": 1200.0,
    "resolution": "raw",
    "starts": ["2026-11-30T07:00:00Z", "2026-11-30T07:20:00Z", "2026-11-30T07:40:00Z"],
    "series": [{"endpoint": 5, "instance": 17, "values": {"requests_per_second": [1.2, None, 0.0]}}],
}


class EndpointValuesSerializer(serializers.Serializer[Any]):
    endpoint = serializers.IntegerField()
    instance = serializers.IntegerField()
    values = values_field()


@extend_schema_serializer(examples=[OpenApiExample("an endpoint", SERIES_EXAMPLE)])
class ServingSeriesSerializer(serializers.Serializer[dict[str, Any]]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    bucket_seconds = serializers.FloatField(help_text="Every value is about one bucket of this length.")
    resolution = serializers.ChoiceField(
        choices=[one.name for one in RESOLUTIONS], help_text="What was read; the span decides."
    )
    starts = serializers.ListField(child=serializers.DateTimeField(), help_text="Where each bucket starts.")
    series = EndpointValuesSerializer(many=True)


def parameters() -> list[OpenApiParameter]:
    span = [one for one in span_parameters(list(FIELDS), list(DEFAULTS)) if one.name != "statistic"]
    return [
        ids_parameter("endpoint", "Ids of endpoints, separated by commas."),
        ids_parameter("instance", "Ids of machines, separated by commas, for all their endpoints."),
        *span,
    ]


class ServingSeriesView(ApiView):
    """Figures of serving endpoints over time. Latencies are means; `…_p95` is the largest 95th percentile that a reading in the bucket had."""

    serializer_class = ServingSeriesSerializer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    known_parameters = ("since", "until", "fields", "max_points", "endpoint", "instance", "team")

    @extend_schema(parameters=parameters())
    def get(self, request: Request) -> Response:
        endpoints = self.endpoints(request)
        span = self.span(request, count=len(endpoints))
        found = serving_series(endpoint_ids=list(endpoints), **span)
        series = [
            {"endpoint": pk, "instance": instance, "values": found.values[pk]} for pk, instance in endpoints.items()
        ]
        told = {"since": span["since"], "until": span["until"], "starts": found.starts, "series": series}
        return Response({**told, "bucket_seconds": found.bucket_seconds, "resolution": found.resolution})

    def endpoints(self, request: Request) -> dict[int, int]:
        """Endpoint id -> machine id."""
        named, machines = ids_of(request, "endpoint", most=MAX_IDS), ids_of(request, "instance", most=MAX_IDS)
        if not named and not machines:
            raise ValidationError({"endpoint": _("Give the ids of endpoints, or of machines as `instance`.")})
        own = ServingLatest.objects.filter(instance__team__in=team_ids(request))
        visible(Instance.objects.filter(team__in=team_ids(request)), machines, "instance")
        rows = visible(own, named, "endpoint") | own.filter(instance__in=machines)
        return dict(rows.order_by("instance_id", "id").values_list("id", "instance_id")[:MAX_IDS])

    def span(self, request: Request, *, count: int) -> dict[str, Any]:
        now = timezone.now()
        until = moment_of(request, "until") or now
        check_kept("until", until, now)
        since = moment_of(request, "since") or until - DEFAULT_SPAN
        fields: Sequence[str] = words_of(request, "fields", FIELDS) or DEFAULTS
        max_points = number_of(request, "max_points", low=2, high=MAX_POINTS, default=DEFAULT_POINTS)
        check_span(since, until, now)
        check_size(count * len(fields) * max_points)
        return {"since": since, "until": until, "max_points": max_points, "fields": fields}
