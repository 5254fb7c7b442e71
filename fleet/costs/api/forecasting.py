"""The forecast of the present month over the API: the figures of the page of costs, of the team or of a part of its money."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.api.spending import FILTERS, PARAMETERS, where_of
from fleet.costs.forecast.forecast import Forecast, month_forecast
from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle

FORECAST_EXAMPLE = {
    "currency": "USD",
    "month_start": "2026-11-01T00:00:00Z",
    "month_end": "2026-12-01T00:00:00Z",
    "since": "2026-11-17T08:40:00Z",
    "spent": "33918.00",
    "will_end": "61430.00",
    "low": "59200.00",
    "high": "63900.00",
    "parts": [
        {"kind": "spent", "amount": "33918.00", "count": 0, "says": "Spent so far"},
        {"kind": "running", "amount": "29309.00", "count": 0, "says": "13.6 days at $89.55/h"},
        {"kind": "stops", "amount": "-1797.00", "count": 3, "says": "3 machines with planned stops"},
    ],
    "days": [{"at": "2026-11-18T00:00:00Z", "amount": "35350.00", "low": "35300.00", "high": "35410.00"}],
    "band": {"measured": True, "history_days": 90, "forecasts": 58, "held": 8, "held_of": 10, "backtest": False},
    "unpriced": 0,
}


def cents(help_text: str = "") -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=30, decimal_places=2, help_text=help_text)


class ForecastPartSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=[one.value for one in PartKind])
    amount = cents()
    count = serializers.IntegerField(help_text="Of the machines that it is about; 0 where that does not matter.")
    says = serializers.CharField(source="words", help_text="In the language asked for.")


class ForecastPointSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField(help_text="A midnight of the team's time zone, or now.")
    amount = cents("What has been, or will have been spent by then.")
    low = cents()
    high = cents()


class ForecastBandSerializer(serializers.Serializer[Any]):
    """Eight in ten end between low and high."""

    measured = serializers.BooleanField(
        source="usual.measured", help_text="False: too little history, and the band is a wide default."
    )
    history_days = serializers.IntegerField(source="usual.days")
    forecasts = serializers.IntegerField(source="usual.origins", help_text="From how many past days the band is taken.")
    held = serializers.IntegerField(help_text="So many of `held_of` past forecasts ended within their band.")
    held_of = serializers.IntegerField()
    backtest = serializers.BooleanField(
        source="held_is_backtest", help_text="Those forecasts were reckoned afterwards, each from the days before it."
    )


@extend_schema_serializer(examples=[OpenApiExample("a month", FORECAST_EXAMPLE)])
class ForecastSerializer(serializers.Serializer[Forecast]):
    """Rounded here and nowhere before; the parts add up to `will_end` before they are rounded."""

    currency = serializers.CharField()
    month_start = serializers.DateTimeField()
    month_end = serializers.DateTimeField()
    since = serializers.DateTimeField(help_text="Up to when `spent` counts.")
    spent = cents()
    will_end = cents()
    low = cents()
    high = cents()
    parts = ForecastPartSerializer(many=True)
    days = ForecastPointSerializer(many=True)
    band = ForecastBandSerializer(source="*")
    unpriced = serializers.IntegerField(
        help_text="Charges at a price that nobody told, or in a currency without a rate: they are in no figure."
    )


class ForecastView(ApiView):
    """Where the present month is heading, out of parts that add up to it, with the band in which eight of ten end."""

    serializer_class = ForecastSerializer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    known_parameters = ("team", "meter", *FILTERS)

    @extend_schema(parameters=[one for one in PARAMETERS if one.name in {"team", "meter", *FILTERS}])
    def get(self, request: Request) -> Response:
        made = month_forecast(team=one_team(request), now=timezone.now(), where=where_of(request))
        return Response(ForecastSerializer(made).data)
