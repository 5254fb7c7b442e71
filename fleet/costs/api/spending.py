"""What was spent over the API: the same sums as on the page of costs, split and filtered."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.ledger.intervals import Meter
from fleet.costs.month import EARLIEST, Month
from fleet.costs.spend.spend import By, Spend, Sum, Where, spend
from fleet.rest.parameters import ids_of, word_of, words_of
from fleet.states import GpuState
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle

MOST_DAYS = 800
LATEST = date(2100, 1, 1)
MOST_SPLITS = 3
MOST_IDS = 200
MOST_LABEL = 63
FILTERS = ("project", "owner", "account", "instance")

SUM_EXAMPLE = {
    "total": "1240.50",
    "amounts": [{"currency": "USD", "amount": "1240.50"}],
    "unconverted": [],
    "states": {"working": "900.25", "held": "240.25", "free": "100.00"},
    "gpu_hours": {"working": 361.0, "held": 96.5, "free": 40.0},
    "idle": "340.25",
    "bought_nothing": "340.25",
    "unpriced_hours": 0.0,
}
SPEND_EXAMPLE = {
    "start": "2026-11-01",
    "end": "2026-12-01",
    "time_zone": "UTC",
    "currency": "USD",
    "by": ["project"],
    "all": SUM_EXAMPLE,
    "results": [{"project": 4, **SUM_EXAMPLE}],
    "rates": [],
}


class AmountSerializer(serializers.Serializer[Any]):
    currency = serializers.CharField()
    amount = serializers.DecimalField(max_digits=30, decimal_places=2)


class SumSerializer(serializers.Serializer[Sum]):
    """Rounded here, half to even, and nowhere before: rows need not add up to `all` by the cent."""

    total = serializers.SerializerMethodField(help_text="In `currency`: what has a rate to it.")
    amounts = serializers.SerializerMethodField(help_text="As charged, by currency; they are never added.")
    unconverted = serializers.SerializerMethodField(help_text="What has no rate and is in no total.")
    states = serializers.SerializerMethodField(help_text="`total` by GPU state.")
    gpu_hours = serializers.SerializerMethodField(help_text="Rented GPU-hours by state.")
    idle = serializers.SerializerMethodField(help_text="Held idle and free.")
    bought_nothing = serializers.SerializerMethodField(help_text="Held idle, free and stalled.")
    unpriced_hours = serializers.SerializerMethodField(help_text="Machine-hours charged at a price that nobody told.")

    def get_total(self, found: Sum) -> str:
        return cents(found.total)

    def get_amounts(self, found: Sum) -> list[dict[str, str]]:
        return amounts_of(found.amounts)

    def get_unconverted(self, found: Sum) -> list[dict[str, str]]:
        return amounts_of(found.unconverted)

    def get_states(self, found: Sum) -> dict[str, str]:
        return {state.value: cents(found.states[state]) for state in GpuState if found.states.get(state)}

    def get_gpu_hours(self, found: Sum) -> dict[str, float]:
        hours = found.gpu_seconds
        return {state.value: round(hours[state] / 3600, 3) for state in GpuState if hours.get(state)}

    def get_idle(self, found: Sum) -> str:
        return cents(found.idle)

    def get_bought_nothing(self, found: Sum) -> str:
        return cents(found.bought_nothing)

    def get_unpriced_hours(self, found: Sum) -> float:
        return round(found.unpriced_seconds / 3600, 3)


class RateSerializer(serializers.Serializer[Any]):
    currency = serializers.CharField()
    into = serializers.CharField()
    day = serializers.DateField()
    rate = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # declared fields leave the class


@extend_schema_serializer(examples=[OpenApiExample("by project", SPEND_EXAMPLE)])
class SpendSerializer(serializers.Serializer[Spend]):
    start = serializers.DateField(help_text="The first day, of the team's time zone.")
    end = serializers.DateField(help_text="The day after the last.")
    time_zone = serializers.CharField()
    currency = serializers.CharField()
    by = serializers.ListField(child=serializers.CharField())
    all = SumSerializer()
    results = serializers.ListField(
        child=serializers.DictField(),
        help_text="A row a value of `by`, the largest total first: the values under their names (ids of projects, owners, accounts "
        "and machines; null: of none), and the sums as in `all`.",
    )
    rates = RateSerializer(many=True, help_text="With which something was converted.")


PARAMETERS = [
    OpenApiParameter("team", description="Address (slug) of the team; needed where you are in several."),
    OpenApiParameter("start", date, description="The first day; that of the present month unless told."),
    OpenApiParameter("end", date, description="The day after the last; tomorrow unless told."),
    OpenApiParameter(
        "by", description=f"Splits, at most {MOST_SPLITS}, separated by commas: {', '.join(one.value for one in By)}."
    ),
    OpenApiParameter("label", description="The key of the label, with `by=label`."),
    OpenApiParameter("currency", description="What totals are converted into; the team's unless told."),
    *(OpenApiParameter(name, description="Only of these: ids, separated by commas.") for name in FILTERS),
    OpenApiParameter(
        "meter", {"type": "string", "enum": [one.value for one in Meter]}, description="Only this charge."
    ),
]


class SpendingView(ApiView):
    """What was spent on the days from `start` until `end`, from the ledger: split by projects, machines, GPU states and more."""

    serializer_class = SpendSerializer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    known_parameters = ("team", "start", "end", "by", "label", "currency", "meter", *FILTERS)

    @extend_schema(parameters=PARAMETERS)
    def get(self, request: Request) -> Response:
        team = one_team(request)
        start, end = days_of(request, Month.of(team, now=timezone.now()))
        found = spend(
            team=team,
            start=start,
            end=end,
            by=splits_of(request),
            where=where_of(request),
            currency=currency_of(request),
            label=request.query_params.get("label", "")[:MOST_LABEL],
        )
        head = {"start": start, "end": end, "time_zone": team.time_zone, "currency": found.currency}
        return Response(
            {
                **head,
                "by": [one.value for one in found.by],
                "all": SumSerializer(found.all).data,
                "results": [row_of(found, key, one) for key, one in found.rows.items()] if found.by else [],
                "rates": RateSerializer(found.rates, many=True).data,
            }
        )


def row_of(found: Spend, key: tuple[object, ...], one: Sum) -> dict[str, Any]:
    values = {
        by.value: value.isoformat() if isinstance(value, date) else value
        for by, value in zip(found.by, key, strict=True)
    }
    return values | dict(SumSerializer(one).data)


def cents(amount: Decimal) -> str:
    return f"{amount:.2f}"


def amounts_of(amounts: dict[str, Decimal]) -> list[dict[str, str]]:
    return [{"currency": currency, "amount": cents(amount)} for currency, amount in sorted(amounts.items())]


def days_of(request: Request, month: Month) -> tuple[date, date]:
    """Raises ValidationError for what is no span of days, or too long a one."""
    start = day_of(request, "start") or month.first
    end = day_of(request, "end") or month.end
    if end <= start:
        raise ValidationError({"end": _("Give a day after start.")})
    if (end - start).days > MOST_DAYS:
        raise ValidationError({"end": _("Give at most %(days)d days.") % {"days": MOST_DAYS}})
    return start, end


def day_of(request: Request, name: str) -> date | None:
    word = request.query_params.get(name)
    if word is None:
        return None
    try:
        day = date.fromisoformat(word)
    except ValueError:
        raise ValidationError({name: _("Give a day as 2026-11-30.")}) from None
    if not EARLIEST <= day <= LATEST:
        raise ValidationError({name: _("Give a day as 2026-11-30.")})
    return day


def splits_of(request: Request) -> tuple[By, ...]:
    words = words_of(request, "by", [one.value for one in By])
    if len(words) > MOST_SPLITS:
        raise ValidationError({"by": _("Give %(most)d splits at most.") % {"most": MOST_SPLITS}})
    if By.LABEL in words and not request.query_params.get("label"):
        raise ValidationError({"label": _("Give the key of the label to split by.")})
    return tuple(By(word) for word in words)


def where_of(request: Request) -> Where:
    return Where(
        projects=tuple(ids_of(request, "project", most=MOST_IDS)),
        owners=tuple(ids_of(request, "owner", most=MOST_IDS)),
        accounts=tuple(ids_of(request, "account", most=MOST_IDS)),
        instances=tuple(ids_of(request, "instance", most=MOST_IDS)),
        meters=(word_of(request, "meter", [one.value for one in Meter], default=""),)
        if "meter" in request.query_params
        else (),
    )


def currency_of(request: Request) -> str:
    code = request.query_params.get("currency", "")
    if code and not (len(code) == 3 and code.isascii() and code.isupper()):
        raise ValidationError({"currency": _("Give the three letters of a currency, as USD.")})
    return code
