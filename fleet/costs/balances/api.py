"""Balances over the API: what was read and typed, and how long each account's money lasts."""

from __future__ import annotations

from collections.abc import Collection
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.balances.judging import judge_team
from fleet.costs.balances.keeping import set_limits, type_balance
from fleet.costs.balances.models import BalanceReading, BalanceSource
from fleet.costs.balances.shown import Runway, runways_of
from fleet.inventory.models import ProviderAccount
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, IdsFilter, MomentFilter, WordsFilter
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

BALANCE_EXAMPLE = {
    "id": 501,
    "team": "acme",
    "account": 2,
    "at": "2026-11-30T08:00:00Z",
    "amount": "118.000000",
    "currency": "USD",
    "source": "provider",
}
RUNWAY_EXAMPLE = {
    "account": 2,
    "balance": "118.000000",
    "currency": "USD",
    "source": "provider",
    "read_at": "2026-11-30T08:00:00Z",
    "left": "117.10",
    "burn_per_hour": "3.60",
    "hours_left": "32.5",
    "ends_at": "2026-12-01T16:31:00Z",
    "idle_per_hour": "1.20",
    "without_idle_hours": "48.8",
    "unpriced_machines": 0,
    "is_at_most": False,
    "at_zero": "machines are stopped, their disks are still billed and later deleted",
    "error": "",
    "warning_hours": 48,
    "urgent_hours": 12,
}


@extend_schema_serializer(examples=[OpenApiExample("balance", BALANCE_EXAMPLE)])
class BalanceSerializer(serializers.ModelSerializer[BalanceReading]):
    team = serializers.CharField(source="account.team.slug", help_text="Its address (slug).")
    account = serializers.IntegerField(source="account_id", help_text="An account's id.")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # declared fields leave the class
        choices=BalanceSource.choices, help_text="Read from the provider, or typed by a person."
    )

    class Meta:
        model = BalanceReading
        fields = list(BALANCE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("runway", RUNWAY_EXAMPLE)])
class RunwaySerializer(serializers.Serializer[Runway]):
    """Money is in `currency`; null is not known, which is not nothing."""

    account = serializers.IntegerField(source="account.pk")
    balance = serializers.DecimalField(max_digits=20, decimal_places=6, allow_null=True, help_text="As read or typed.")
    currency = serializers.CharField()
    source = serializers.CharField(help_text="provider, typed, or empty.")  # type: ignore[assignment]  # declared fields leave the class
    read_at = serializers.DateTimeField(allow_null=True)
    left = serializers.SerializerMethodField(help_text="Now, at the present rate since then.")
    burn_per_hour = serializers.SerializerMethodField(help_text="Of all its machines, disks of stopped ones included.")
    hours_left = serializers.SerializerMethodField(help_text="null: nothing known is charged, or nothing was read.")
    ends_at = serializers.DateTimeField(allow_null=True)
    idle_per_hour = serializers.SerializerMethodField(help_text="Of machines all of whose GPUs do nothing.")
    without_idle_hours = serializers.SerializerMethodField(help_text="If those were gone; null: there are none.")
    unpriced_machines = serializers.IntegerField(source="unpriced", help_text="Charged at a price nobody told.")
    is_at_most = serializers.BooleanField(help_text="Whether it ends sooner, for prices or rates that are not known.")
    at_zero = serializers.CharField(source="zero_balance", help_text="What the provider does then.")
    error = serializers.CharField(help_text="Why it could not be read lately; empty where it could.")
    warning_hours = serializers.IntegerField(source="limits.warning_hours")
    urgent_hours = serializers.IntegerField(source="limits.urgent_hours")

    def get_left(self, one: Runway) -> str | None:
        return None if one.lasts is None else rounded(one.lasts.left, "0.01")

    def get_burn_per_hour(self, one: Runway) -> str:
        return rounded(one.burn_per_hour, "0.01")

    def get_hours_left(self, one: Runway) -> str | None:
        return None if one.hours_left is None else rounded(one.hours_left, "0.1")

    def get_idle_per_hour(self, one: Runway) -> str:
        return rounded(one.idle_per_hour, "0.01")

    def get_without_idle_hours(self, one: Runway) -> str | None:
        return None if one.without_idle_hours is None else rounded(one.without_idle_hours, "0.1")


@extend_schema_serializer(examples=[OpenApiExample("runways", {"results": [RUNWAY_EXAMPLE]})])
class Runways(serializers.Serializer[dict[str, Any]]):
    results = RunwaySerializer(many=True, help_text="The one that ends first before the others.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "what is left", {"account": 2, "amount": "250.00", "currency": "USD", "at": "2026-11-30T08:00:00Z"}
        )
    ]
)
class TypedBalance(Body[dict[str, Any]]):
    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="Whose provider tells none.")
    amount = serializers.DecimalField(max_digits=20, decimal_places=6)
    currency = serializers.CharField(max_length=3, required=False, help_text="Left out: the account's.")
    at = serializers.DateTimeField(required=False, help_text="Left out: now.")


@extend_schema_serializer(
    examples=[OpenApiExample("of one account", {"account": 2, "warning_hours": 72, "urgent_hours": 24})]
)
class LimitsBody(Body[dict[str, Any]]):
    account = serializers.IntegerField(
        min_value=1, max_value=BIGGEST_ID, required=False, help_text="Left out: of all that have none of their own."
    )
    warning_hours = serializers.IntegerField(min_value=1, max_value=8784)
    urgent_hours = serializers.IntegerField(min_value=0, max_value=8784)


class BalanceFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    source = WordsFilter(choices=BalanceSource.choices, help_text="Sources, separated by commas.")
    since = MomentFilter("at", "gte", help_text="At or after this time.")
    until = MomentFilter("at", "lt", help_text="Before this time.")


class BalanceViewSet(WritableRows[BalanceReading]):
    """What was left of prepaid money and when, read from providers every ten minutes or typed; kept for 90 days."""

    http_method_names = ["get", "post", "head"]
    queryset = BalanceReading.objects.select_related("account__team").defer("account__credentials")
    serializer_class = BalanceSerializer
    filterset_class = BalanceFilter
    team_path = "account__team"
    orderings = ("-at", "id")
    bodies = {"create": TypedBalance, "limits": LimitsBody}
    answers = {
        "create": (status.HTTP_201_CREATED, BalanceSerializer),
        "limits": (status.HTTP_200_OK, Runways),
        "runways": (status.HTTP_200_OK, Runways),
    }

    def get_known_parameters(self) -> Collection[str]:
        return {"team"} if self.action == "runways" else super().get_known_parameters()

    def create(self, request: Request) -> Response:
        """Types what is left at an account whose provider tells none. From then on it is counted down by the ledger."""
        asked, now = self.body(request), timezone.now()
        account = self.named(ProviderAccount.objects.select_related("team"), field="account", pk=asked.pop("account"))
        with naming_form_fields():
            row = type_balance(
                actor=self.actor(request),
                account=account,
                now=now,
                **{"currency": account.currency, "at": now, **asked},
            )
        judge_team(team=account.team, now=now)
        return self.answer(row, status.HTTP_201_CREATED)

    @action(detail=False, methods=["get"], filterset_class=None, pagination_class=None)
    def runways(self, request: Request) -> Response:
        """How long the money of each account of a team lasts at what its machines cost now."""
        return self._runways(one_team(request))

    @action(detail=False, methods=["post"])
    def limits(self, request: Request) -> Response:
        """For how many hours a balance must last before somebody is told: of one account, or of all that have none of their own."""
        asked, now, account = self.body(request), timezone.now(), None
        if "account" in asked:
            rows = ProviderAccount.objects.select_related("team")
            account = self.named(rows, field="account", pk=asked.pop("account"))
        team = account.team if account else one_team(request, role=Role.OPERATOR)
        with naming_form_fields():
            set_limits(actor=self.actor(request), team=team, account=account, now=now, **asked)
        judge_team(team=team, now=now)
        return self._runways(team)

    def _runways(self, team: Any) -> Response:
        found = runways_of(team, timezone.now())
        return Response(Runways({"results": found}, context=self.get_serializer_context()).data)


def rounded(amount: Decimal, to: str) -> str:
    return str(amount.quantize(Decimal(to), ROUND_HALF_EVEN))
