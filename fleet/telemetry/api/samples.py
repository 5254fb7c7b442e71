"""Series of readings over the API: one figure per even bucket, gaps as null."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_503_SERVICE_UNAVAILABLE

from fleet.inventory.models import GPU, Instance
from fleet.rest.parameters import ids_of, moment_of, number_of, word_of, words_of
from fleet.rest.problems import not_found
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle
from fleet.telemetry.api.examples import GPU_SERIES_EXAMPLE, HOST_SERIES_EXAMPLE
from fleet.telemetry.api.files import FILE_ANSWERS, RENDERERS, NamedFormats, refuse_as_json
from fleet.telemetry.api.latest import GPU_COLUMNS, HOST_COLUMNS
from fleet.telemetry.rollups.columns import RESOLUTIONS, ROLLUPS
from fleet.telemetry.series import STATISTICS, Series, gpu_series, host_series
from fleet.telemetry.store.base import StoreError

logger = logging.getLogger(__name__)

PERCENTILE_SOURCES = ("samples", *(one.name for one in ROLLUPS))
DEFAULT_SPAN = timedelta(hours=1)
DEFAULT_POINTS, MAX_POINTS = 600, 2000
MAX_IDS = 512
# What one answer may hold: some 4 MB of JSON, and a second of the database's time.
MAX_VALUES = 300_000
GPU_DEFAULTS = ("utilization_percent", "memory_used_bytes", "power_watts", "temperature_celsius")
HOST_DEFAULTS = (
    *("cpu_percent", "memory_used_bytes", "disk_read_iops", "disk_write_iops", "disk_read_bytes_per_second"),
    *("disk_write_bytes_per_second", "network_rx_bytes_per_second", "network_tx_bytes_per_second"),
)


class SpanSerializer(serializers.Serializer[dict[str, Any]]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    bucket_seconds = serializers.FloatField(help_text="Every value is about one bucket of this length.")
    resolution = serializers.ChoiceField(
        choices=[one.name for one in RESOLUTIONS],
        help_text="What was read: samples as they came, or rollups of 5 minutes or an hour; the span decides.",
    )
    statistic = serializers.ChoiceField(choices=STATISTICS, help_text="What a value is of its bucket.")
    percentile_of = serializers.ChoiceField(
        choices=PERCENTILE_SOURCES,
        allow_null=True,
        help_text="With p95 only: of `samples`, or the largest of the percentiles that rollups of `5min` or `1h` keep.",
    )
    starts = serializers.ListField(child=serializers.DateTimeField(), help_text="Where each bucket starts.")


VALUES_HELP = "Field -> one value per bucket; null where nothing was read."


def values_field() -> serializers.DictField:
    return serializers.DictField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)), help_text=VALUES_HELP
    )


class GpuValuesSerializer(serializers.Serializer[Any]):
    gpu = serializers.IntegerField()
    instance = serializers.IntegerField()
    values = values_field()


class HostValuesSerializer(serializers.Serializer[Any]):
    instance = serializers.IntegerField()
    values = values_field()


@extend_schema_serializer(examples=[OpenApiExample("two readings of a GPU", GPU_SERIES_EXAMPLE)])
class GpuSeriesSerializer(SpanSerializer):
    series = GpuValuesSerializer(many=True)


@extend_schema_serializer(examples=[OpenApiExample("a machine", HOST_SERIES_EXAMPLE)])
class HostSeriesSerializer(SpanSerializer):
    series = HostValuesSerializer(many=True)


def ids_parameter(name: str, description: str, *, required: bool = False) -> OpenApiParameter:
    kind = {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": MAX_IDS}
    return OpenApiParameter(name, kind, description=description, required=required, explode=False)


def span_parameters(columns: Sequence[str], defaults: Sequence[str]) -> list[OpenApiParameter]:
    moment = {"type": "string", "format": "date-time"}
    listed = {"type": "array", "items": {"type": "string", "enum": columns}, "default": defaults}
    statistic = {"type": "string", "enum": list(STATISTICS), "default": "mean"}
    points = {"type": "integer", "minimum": 2, "maximum": MAX_POINTS, "default": DEFAULT_POINTS}
    return [
        OpenApiParameter("since", moment, description="From this time on; an hour before `until` unless told."),
        OpenApiParameter("until", moment, description="Before this time; now unless told."),
        OpenApiParameter("fields", listed, explode=False, description="Readings, separated by commas."),
        OpenApiParameter("statistic", statistic, description="What a value is of its bucket."),
        OpenApiParameter(
            "max_points", points, description="Most buckets in the answer. None is shorter than machines report."
        ),
    ]


class SeriesView(ApiView):
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    renderer_classes = RENDERERS
    content_negotiation_class = NamedFormats
    file_answers = FILE_ANSWERS
    known_parameters: ClassVar[Collection[str]] = (
        *("since", "until", "fields", "statistic", "max_points", "instance", "team", "format"),
    )
    columns: ClassVar[Sequence[str]]
    defaults: ClassVar[Sequence[str]]

    def handle_exception(self, exc: Exception) -> Response:
        refuse_as_json(self.request)
        if isinstance(exc, StoreError):
            logger.error("%s", exc)
            exc = APIException(_("The store of readings cannot answer just now. Ask again later."), "unavailable")
            exc.status_code = HTTP_503_SERVICE_UNAVAILABLE
        return super().handle_exception(exc)

    def span(self, request: Request, *, count: int) -> dict[str, Any]:
        """What the parameters ask for, as arguments of a series function. `count`: of how many rows."""
        now = timezone.now()
        until = moment_of(request, "until") or now
        check_kept("until", until, now)
        since = moment_of(request, "since") or until - DEFAULT_SPAN
        fields = words_of(request, "fields", self.columns) or list(self.defaults)
        max_points = number_of(request, "max_points", low=2, high=MAX_POINTS, default=DEFAULT_POINTS)
        statistic = word_of(request, "statistic", STATISTICS, default="mean")
        check_span(since, until, now)
        check_size(count * len(fields) * max_points)
        span = {"since": since, "until": until, "max_points": max_points}
        return {**span, "fields": fields, "statistic": statistic}

    def instances(self, request: Request) -> QuerySet[Instance]:
        ids = ids_of(request, "instance", most=MAX_IDS)
        return visible(Instance.objects.filter(team__in=team_ids(request)), ids, "instance")


class GpuSeriesView(SeriesView):
    """Readings of GPUs over time: name GPUs, or machines for all GPUs that they have now. The span chooses the table that is read."""

    serializer_class = GpuSeriesSerializer
    known_parameters = (*SeriesView.known_parameters, "gpu")
    columns, defaults = GPU_COLUMNS, GPU_DEFAULTS

    @extend_schema(
        parameters=[
            ids_parameter("gpu", "Ids of GPUs, separated by commas."),
            ids_parameter("instance", "Ids of machines, separated by commas, for all their GPUs."),
            *span_parameters(GPU_COLUMNS, GPU_DEFAULTS),
        ]
    )
    def get(self, request: Request) -> Response:
        gpus = self.gpus(request)
        asked = self.span(request, count=len(gpus))
        found = gpu_series(gpu_ids=list(gpus), **asked)
        series = [{"gpu": gpu, "instance": instance, "values": found.values[gpu]} for gpu, instance in gpus.items()]
        return Response(described(found, series, asked["since"], asked["until"]))

    def gpus(self, request: Request) -> dict[int, int]:
        """GPU id -> machine id, in the order of machines and indices."""
        ids = ids_of(request, "gpu", most=MAX_IDS)
        if not ids and "instance" not in request.query_params:
            raise ValidationError({"gpu": _("Give the ids of GPUs, or of machines as `instance`.")})
        named = visible(GPU.objects.filter(instance__team__in=team_ids(request)), ids, "gpu")
        present = GPU.objects.filter(instance__in=self.instances(request), removed_at=None)
        rows = (named | present).order_by("instance_id", "index", "id").values_list("id", "instance_id")
        return dict(rows)


class HostSeriesView(SeriesView):
    """Readings of machines over time: CPU, memory, disks, network. The span chooses the table that is read."""

    serializer_class = HostSeriesSerializer
    columns, defaults = HOST_COLUMNS, HOST_DEFAULTS

    @extend_schema(
        parameters=[
            ids_parameter("instance", "Ids of machines, separated by commas.", required=True),
            *span_parameters(HOST_COLUMNS, HOST_DEFAULTS),
        ]
    )
    def get(self, request: Request) -> Response:
        if "instance" not in request.query_params:
            raise ValidationError({"instance": _("Give the ids of machines.")})
        ids = list(self.instances(request).order_by("id").values_list("id", flat=True))
        asked = self.span(request, count=len(ids))
        found = host_series(instance_ids=ids, **asked)
        series = [{"instance": pk, "values": found.values[pk]} for pk in ids]
        return Response(described(found, series, asked["since"], asked["until"]))


def team_ids(request: Request) -> list[int]:
    """Rows are named one by one here, so the sandbox's may be among them."""
    slug = request.query_params.get("team")
    return [team.pk for team in Access.of_request(request).teams if slug in {None, team.slug}]


def visible(rows: QuerySet[Any], ids: Collection[int], field: str) -> QuerySet[Any]:
    """Those of `rows` with these ids. Raises 404 where one is missing: it may be another team's."""
    found = rows.filter(pk__in=ids)
    if missing := sorted(set(ids) - set(found.values_list("pk", flat=True))):
        raise not_found(field, _("Not found: %(ids)s.") % {"ids": ", ".join(map(str, missing[:10]))})
    return found


def check_span(since: datetime, until: datetime, now: datetime) -> None:
    if since >= until:
        raise ValidationError({"since": _("Must be earlier than `until`.")})
    check_kept("since", since, now)
    if until > now + timedelta(hours=1):
        raise ValidationError({"until": _("Lies in the future: leave it out for now.")})


def check_kept(field: str, moment: datetime, now: datetime) -> None:
    days = settings.ROLLUP_1H_RETENTION_DAYS
    if moment < now - timedelta(days=days):
        earliest = (now - timedelta(days=days) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%MZ")
        text = _("Readings are kept for %(days)s days: ask from %(earliest)s on.")
        raise ValidationError({field: text % {"days": days, "earliest": earliest}})


def check_size(values: int) -> None:
    if values > MAX_VALUES:
        text = _(
            "Up to %(values)s values were asked for, and %(most)s are answered: ask for fewer points, fields or rows."
        )
        raise ValidationError({"max_points": text % {"values": values, "most": MAX_VALUES}})


def described(found: Series, series: list[dict[str, Any]], since: datetime, until: datetime) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "bucket_seconds": found.bucket_seconds,
        "resolution": found.resolution,
        "statistic": found.statistic,
        "percentile_of": found.percentile_of,
        "starts": found.starts,
        "series": series,
    }
