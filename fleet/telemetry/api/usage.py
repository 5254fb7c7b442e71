"""What a fleet did, over the API: the figures of the page of its usage."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.providers.base import Tenancy
from fleet.rest.parameters import moment_of, number_of, word_of
from fleet.states import GpuState
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle
from fleet.telemetry.api.examples import USAGE_EXAMPLE
from fleet.telemetry.api.files import FILE_ANSWERS, RENDERERS, NamedFormats, refuse_as_json
from fleet.telemetry.api.samples import MAX_POINTS, PERCENTILE_SOURCES, check_kept, check_span
from fleet.telemetry.rollups.columns import RESOLUTIONS
from fleet.telemetry.usage import NO_PROJECT, Dimension, Line, Usage, fleet_usage

DEFAULT_SPAN = timedelta(days=7)
DEFAULT_POINTS = 300
DEFAULT_PARTS, MOST_PARTS = 6, 20
PERCENTILES = {"utilization_p50_percent": 0.5, "utilization_p95_percent": 0.95}
FILTER_WORDS = {
    Dimension.PROVIDER: "Only GPUs of this kind of provider, as accounts name it.",
    Dimension.PROJECT: f"Only GPUs that this project had then (its id), or `{NO_PROJECT}` for those without one.",
    Dimension.GPU_MODEL: "Only GPUs of this model, as its provider lists it, else as its driver calls it.",
    Dimension.TENANCY: "Only GPUs rented in this way.",
}


class PartSerializer(serializers.Serializer[Any]):
    part = serializers.CharField(
        allow_null=True,
        help_text='What the fleet is split by; null without a split, "" for all smaller parts together.',
    )
    values = serializers.DictField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="Percentiles and mean across GPUs, power of all that told it, GPU-hours in each state; null where nothing is known.",
    )


@extend_schema_serializer(examples=[OpenApiExample("a fleet's afternoon", USAGE_EXAMPLE)])
class UsageSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    bucket_seconds = serializers.FloatField(help_text="Every value is about one bucket of this length.")
    resolution = serializers.ChoiceField(
        choices=[one.name for one in RESOLUTIONS], help_text="Which rollups were read: `5min` or `1h`."
    )
    percentile_of = serializers.ChoiceField(
        choices=PERCENTILE_SOURCES,
        allow_null=True,
        help_text="Percentiles are across GPUs: each counts once in every rollup of this length, with its mean in it.",
    )
    counted_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Nothing later is known; the newest bucket may be counted in part. Null: nothing yet.",
    )
    split = serializers.ChoiceField(choices=[one.value for one in Dimension], allow_null=True)
    starts = serializers.ListField(child=serializers.DateTimeField(), help_text="Where each bucket starts.")
    series = PartSerializer(many=True)


def _parameters() -> list[OpenApiParameter]:
    moment = {"type": "string", "format": "date-time"}
    points = {"type": "integer", "minimum": 2, "maximum": MAX_POINTS, "default": DEFAULT_POINTS}
    parts = {"type": "integer", "minimum": 1, "maximum": MOST_PARTS, "default": DEFAULT_PARTS}
    split = {"type": "string", "enum": [one.value for one in Dimension]}
    return [
        OpenApiParameter("since", moment, description="From this time on; seven days before `until` unless told."),
        OpenApiParameter("until", moment, description="Before this time; now unless told."),
        OpenApiParameter("max_points", points, description="Most buckets in the answer."),
        OpenApiParameter("split", split, description="One series a value of this, the largest first."),
        OpenApiParameter("parts", parts, description="How many parts a split has before the rest is put together."),
        *(OpenApiParameter(name.value, description=text) for name, text in FILTER_WORDS.items()),
    ]


class UsageView(ApiView):
    """Utilization across the GPUs of a fleet, GPU-hours by state and power over time, split and filtered by what machines were then."""

    serializer_class = UsageSerializer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    renderer_classes = RENDERERS
    content_negotiation_class = NamedFormats
    file_answers = FILE_ANSWERS
    known_parameters = (
        *("since", "until", "max_points", "split", "parts", "team", "format"),
        *(one.value for one in Dimension),
    )

    def handle_exception(self, exc: Exception) -> Response:
        refuse_as_json(self.request)
        return super().handle_exception(exc)

    @extend_schema(parameters=_parameters())
    def get(self, request: Request) -> Response:
        asked = _span(request)
        split = _split(request)
        teams = Access.of_request(request).team_ids(slug=request.query_params.get("team"))
        most = number_of(request, "parts", low=1, high=MOST_PARTS, default=DEFAULT_PARTS)
        found = fleet_usage(team_ids=teams, split=split, filters=_filters(request), most=most, **asked)
        return Response(_described(found, split, asked))


def _span(request: Request) -> dict[str, Any]:
    now = timezone.now()
    until = moment_of(request, "until") or now
    check_kept("until", until, now)
    since = moment_of(request, "since") or until - DEFAULT_SPAN
    check_span(since, until, now)
    points = number_of(request, "max_points", low=2, high=MAX_POINTS, default=DEFAULT_POINTS)
    return {"since": since, "until": until, "max_points": points}


def _split(request: Request) -> Dimension | None:
    word = word_of(request, "split", ["", *Dimension], default="")
    return Dimension(word) if word else None


def _filters(request: Request) -> dict[Dimension, str]:
    wanted = {name: request.query_params[name] for name in Dimension if name in request.query_params}
    project = wanted.get(Dimension.PROJECT, NO_PROJECT)
    if project != NO_PROJECT and not (project.isascii() and project.isdigit()):
        raise ValidationError({"project": _("Give the id of a project, or %(none)s.") % {"none": NO_PROJECT}})
    if Dimension.TENANCY in wanted:
        word_of(request, "tenancy", list(Tenancy), default="")
    return wanted


def _described(found: Usage, split: Dimension | None, asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "since": asked["since"],
        "until": asked["until"],
        "bucket_seconds": found.bucket_seconds,
        "resolution": found.resolution,
        "percentile_of": found.resolution,
        "counted_until": found.rolled_until,
        "split": split.value if split else None,
        "starts": found.starts,
        "series": [{"part": line.key, "values": _values(line)} for line in found.lines],
    }


def _values(line: Line) -> dict[str, list[float | None]]:
    percentiles = {
        name: [None if value is None else float(value) for value in line.utilization(share)]
        for name, share in PERCENTILES.items()
    }
    hours = {f"{state.value}_gpu_hours": line.gpu_hours(state) for state in GpuState}
    return {
        **percentiles,
        "utilization_mean_percent": line.mean_utilization(),
        "power_watts": line.power_watts(),
        **hours,
    }
