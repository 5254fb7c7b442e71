"""Exchange rates over the API: typed one by one or imported as CSV, and removed."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.rates.rates import import_rates, latest_day, remove_rate, set_rate
from fleet.costs.rates.sheet import HIGHEST_RATE, MOST_SOURCE, RATE_STEP, Rate, currency_of, read_rates
from fleet.costs.spend.models import ExchangeRate
from fleet.inventory.api.offer_lists import fault_text
from fleet.inventory.offers.sheet import CellError
from fleet.rest.bodies import Body
from fleet.teams.fields import one_line
from fleet.teams.models import Role
from fleet.teams.pasted import MAX_BYTES
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

RATE_EXAMPLE = {
    "id": 12,
    "team": "acme",
    "currency": "CNY",
    "into": "USD",
    "day": "2026-11-30",
    "rate": "0.1389000000",
    "source": "the bank's table",
    "created_by": "alice",
    "created_at": "2026-11-30T08:00:00Z",
}
NEW_EXAMPLE = {"currency": "CNY", "into": "USD", "day": "2026-11-30", "rate": "0.1389", "source": "the bank's table"}
FILE_EXAMPLE = {"csv": "currency,into,day,rate,source\nCNY,USD,2026-11-30,0.1389,the bank's table\n"}


@extend_schema_serializer(examples=[OpenApiExample("rate", RATE_EXAMPLE)])
class ExchangeRateSerializer(serializers.ModelSerializer[ExchangeRate]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    rate = serializers.DecimalField(
        max_digits=20,
        decimal_places=10,
        help_text="So much of `into` is one `currency`, from `day` on until a newer rate.",
    )
    created_by = serializers.CharField(
        source="created_by.username",
        default=None,
        allow_null=True,
        help_text="A user name; null: a token, or somebody gone.",
    )

    class Meta:
        model = ExchangeRate
        fields = list(RATE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("rate", NEW_EXAMPLE)])
class NewRate(Body[dict[str, Any]]):
    currency = serializers.CharField(max_length=3, help_text="ISO 4217.")
    into = serializers.CharField(max_length=3, help_text="ISO 4217, another one.")
    day = serializers.DateField(help_text="From which it holds; not to come.")
    rate = serializers.DecimalField(
        max_digits=20,
        decimal_places=10,
        min_value=RATE_STEP,
        max_value=HIGHEST_RATE,
        help_text="So much of `into` is one `currency`.",
    )
    source = serializers.CharField(  # type: ignore[assignment]  # declared fields leave the class
        max_length=MOST_SOURCE, required=False, default="", allow_blank=True
    )

    def validate_currency(self, word: str) -> str:
        return checked_currency(word, "currency")

    def validate_into(self, word: str) -> str:
        return checked_currency(word, "into")

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given["currency"] == given["into"]:
            raise ValidationError({"into": _("A currency is always 1 of itself. Name two of them, or drop the row.")})
        return given


@extend_schema_serializer(examples=[OpenApiExample("file", FILE_EXAMPLE)])
class RatesFile(Body[dict[str, Any]]):
    csv = serializers.CharField(
        max_length=MAX_BYTES,
        trim_whitespace=False,
        help_text="With the columns currency,into,day,rate,source, up to 2 MB.",
    )


@extend_schema_serializer(examples=[OpenApiExample("imported", {"rates": 1})])
class ImportedRates(serializers.Serializer[Any]):
    rates = serializers.IntegerField(help_text="How many the file had.")


class ExchangeRateFilter(django_filters.FilterSet):
    currency = django_filters.CharFilter(help_text="ISO 4217.")
    into = django_filters.CharFilter(help_text="ISO 4217.")
    since = django_filters.DateFilter("day", "gte", help_text="Of this day or later.")
    until = django_filters.DateFilter("day", "lt", help_text="Of a day before this one.")


class ExchangeRateViewSet(WritableRows[ExchangeRate]):
    """What totals are converted with: on each day the newest rate that is not younger. Without one, money stays in its currency."""

    http_method_names = ["get", "post", "delete", "head"]
    write_role = Role.ADMIN
    queryset = ExchangeRate.objects.select_related("team", "created_by")
    serializer_class = ExchangeRateSerializer
    filterset_class = ExchangeRateFilter
    orderings = ("-day", "id", "currency")
    bodies = {"create": NewRate, "import_file": RatesFile}
    answers = {"import_file": (status.HTTP_200_OK, ImportedRates)}

    def create(self, request: Request) -> Response:
        """Keeps a rate, in place of the one of the same day."""
        asked, team, now = self.body(request), one_team(request, role=Role.ADMIN), timezone.now()
        if asked["day"] > latest_day(team, now):
            raise ValidationError({"day": _("This day is still to come. Give the day from which the rate holds.")})
        rate = Rate(**asked | {"source": one_line(asked["source"])})
        return self.answer(set_rate(actor=self.actor(request), team=team, rate=rate, now=now), status.HTTP_201_CREATED)

    @action(detail=False, methods=["post"], url_path="import")
    def import_file(self, request: Request) -> Response:
        """Imports rates from CSV: all of them, or none. The first wrong cell is told by line and column."""
        asked, team, now = self.body(request), one_team(request, role=Role.ADMIN), timezone.now()
        sheet = read_rates(asked["csv"], latest=latest_day(team, now))
        if sheet.faults:
            raise ValidationError({"csv": fault_text(sheet.faults[0], len(sheet.faults))})
        return Response({"rates": import_rates(actor=self.actor(request), team=team, rates=sheet.rates, now=now)})

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes a rate: its days take the one before it."""
        remove_rate(actor=self.actor(request), rate=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


def checked_currency(word: str, column: str) -> str:
    try:
        return currency_of(word, column)
    except CellError as error:
        raise ValidationError(error.text) from None
