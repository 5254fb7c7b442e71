"""What was counted against what was billed, and adjustments, over the API."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.bills.adjusting import (
    KINDS,
    Correction,
    accept_explained,
    accept_lines,
    create_adjustment,
    reverse_adjustment,
)
from fleet.costs.bills.matching import MeterClass, Status
from fleet.costs.bills.models import Reconciliation, ReconciliationLine
from fleet.costs.spend.models import Adjustment
from fleet.inventory.models import Instance, ProviderAccount
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter, MomentFilter, WordsFilter, words
from fleet.teams.scoping import TeamRows
from fleet.teams.writing import WritableRows

MOST_LINES = 5_000
COMPARISON_EXAMPLE: dict[str, Any] = {
    "id": 5,
    "team": "acme",
    "account": 2,
    "month": "2026-11-01",
    "currency": "USD",
    "counted": "22474.56000000000000",
    "billed": "22631.69000000000000",
    "explained": "150.95000000000000",
    "left": "6.18000000000000",
    "matched": "20961.30000000000000",
    "matched_lines": 34,
    "made_at": "2026-12-02T08:37:00Z",
}
LINE_EXAMPLE: dict[str, Any] = {
    "id": 88,
    "team": "acme",
    "reconciliation": 5,
    "account": 2,
    "instance": 17,
    "name": "",
    "meter": "compute",
    "starts_at": "2026-11-14T00:00:00Z",
    "ends_at": "2026-11-15T00:00:00Z",
    "status": "differs",
    "counted": "1273.68000000000000",
    "billed": "1317.60000000000000",
    "left": "0.00000000000000",
    "reasons": [
        {
            "kind": "silent",
            "amount": "43.92000000000000",
            "start": "2026-11-14T02:00:00+00:00",
            "end": "2026-11-14T04:00:00+00:00",
        }
    ],
}
ADJUSTMENT_EXAMPLE: dict[str, Any] = {
    "id": 3,
    "team": "acme",
    "account": 2,
    "instance": 17,
    "at": "2026-11-14T12:00:00Z",
    "amount": "-20.0000000000",
    "currency": "USD",
    "kind": "refund",
    "reason": "outage of 14 November",
    "reverses": None,
    "reversed_by": None,
    "created_by": "alice",
    "created_at": "2026-12-02T09:00:00Z",
}


@extend_schema_serializer(examples=[OpenApiExample("reconciliation", COMPARISON_EXAMPLE)])
class ReconciliationSerializer(serializers.ModelSerializer[Reconciliation]):
    team = serializers.CharField(source="account.team.slug", help_text="Its address (slug).")

    class Meta:
        model = Reconciliation
        fields = list(COMPARISON_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("line", LINE_EXAMPLE)])
class ReconciliationLineSerializer(serializers.ModelSerializer[ReconciliationLine]):
    team = serializers.CharField(source="reconciliation.account.team.slug", help_text="Its address (slug).")
    account = serializers.IntegerField(source="reconciliation.account_id")
    reasons = serializers.ListField(
        child=serializers.DictField(child=serializers.CharField()),
        help_text="`kind` and `amount` of what is explained, and what it is known by; the rest of the difference is `left`.",
    )

    class Meta:
        model = ReconciliationLine
        fields = list(LINE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("adjustment", ADJUSTMENT_EXAMPLE)])
class AdjustmentSerializer(serializers.ModelSerializer[Adjustment]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    reversed_by = serializers.IntegerField(
        source="reversed_by.pk", default=None, allow_null=True, help_text="The adjustment that takes it back."
    )
    created_by = serializers.CharField(
        source="created_by.username", default=None, allow_null=True, help_text="A user name; null for a token."
    )

    class Meta:
        model = Adjustment
        fields = list(ADJUSTMENT_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("accepted", {"adjustments": [3, 4]})])
class AcceptedSerializer(serializers.Serializer[Any]):
    adjustments = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of those that were made.")


@extend_schema_serializer(
    examples=[OpenApiExample("all explained", {}), OpenApiExample("some lines", {"lines": [88, 89]})]
)
class AcceptBody(Body[dict[str, Any]]):
    lines = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID),
        required=False,
        min_length=1,
        max_length=MOST_LINES,
        help_text="Ids of `reconciliation-lines`. Left out: all whose difference is explained.",
    )


class ReconciliationFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    month = django_filters.DateFilter(help_text="Its first day, as 2026-11-01.")


class ReconciliationViewSet(WritableRows[Reconciliation]):
    """Months of accounts, by UTC: counted + explained + left = billed. Made anew when a bill comes, and every hour; ids change with it."""

    http_method_names = ["get", "post", "head"]
    queryset = Reconciliation.objects.select_related("account__team").defer("account__credentials")
    serializer_class = ReconciliationSerializer
    filterset_class = ReconciliationFilter
    team_path = "account__team"
    orderings = ("-month", "id", "-left")
    bodies = {"accept": AcceptBody}
    answers = {"accept": (201, AcceptedSerializer)}

    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pk: str) -> Response:
        """Counts lines as billed: an adjustment for each, which can be reversed. What another month's bill has is left as it is."""
        asked, found = self.body(request), self.get_object()
        actor, now = self.actor(request), timezone.now()
        with naming_form_fields():
            if "lines" in asked:
                made = accept_lines(actor=actor, reconciliation=found, lines=asked["lines"], now=now)
            else:
                made = accept_explained(actor=actor, reconciliation=found, now=now)
        return Response({"adjustments": [one.pk for one in made]}, status=status.HTTP_201_CREATED)


class ReconciliationLineFilter(django_filters.FilterSet):
    reconciliation = IdsFilter(help_text="Ids of reconciliations, separated by commas.")
    account = IdsFilter("reconciliation__account", help_text="Ids of accounts, separated by commas.")
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    status = WordsFilter(choices=words(Status), help_text="Separated by commas.")
    meter = WordsFilter(choices=words(MeterClass), help_text="Separated by commas.")


class ReconciliationLineViewSet(TeamRows[ReconciliationLine]):
    """What did not match. Lines that did are in the sums of their month alone, but for those that an adjustment corrected before."""

    queryset = ReconciliationLine.objects.select_related("reconciliation__account__team").defer(
        "reconciliation__account__credentials"
    )
    serializer_class = ReconciliationLineSerializer
    filterset_class = ReconciliationLineFilter
    team_path = "reconciliation__account__team"
    orderings = ("id", "-starts_at")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "refund",
            {
                "account": 2,
                "at": "2026-11-14T12:00:00Z",
                "amount": "-20.00",
                "currency": "USD",
                "kind": "refund",
                "reason": "outage of 14 November",
            },
        )
    ]
)
class NewAdjustment(Body[dict[str, Any]]):
    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="An account's id.")
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, required=False, help_text="A machine of it."
    )
    at = serializers.DateTimeField(help_text="In whose day it counts.")
    amount = serializers.DecimalField(max_digits=20, decimal_places=10, help_text="Below zero: a credit or a refund.")
    currency = serializers.CharField(max_length=3, help_text="As USD.")
    kind = serializers.ChoiceField(choices=KINDS, help_text="What it is.")
    reason = serializers.CharField(max_length=300, help_text="Why; it stands beside the amount for ever.")


@extend_schema_serializer(examples=[OpenApiExample("reverse", {"reason": "typed wrong"})])
class ReverseBody(Body[dict[str, Any]]):
    reason = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="Why.")


class AdjustmentFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    kind = WordsFilter(choices=[(kind, kind) for kind in KINDS], help_text="Separated by commas.")
    reversed = FlagFilter(method="filter_reversed", help_text="Whether another one takes it back.")
    since = MomentFilter("at", "gte", help_text="Counting at or after this time.")
    until = MomentFilter("at", "lt", help_text="Counting before this time.")

    def filter_reversed(self, rows: Any, name: str, value: bool) -> Any:
        return rows.filter(reversed_by__isnull=not value)


class AdjustmentViewSet(WritableRows[Adjustment]):
    """Corrections beside what was counted: the only way in which a bill changes a total. Never changed, only reversed."""

    http_method_names = ["get", "post", "head"]
    queryset = Adjustment.objects.select_related("team", "created_by", "reversed_by")
    serializer_class = AdjustmentSerializer
    filterset_class = AdjustmentFilter
    orderings = ("-at", "id", "-created_at")
    bodies = {"create": NewAdjustment, "reverse": ReverseBody}
    answers = {"reverse": (201, AdjustmentSerializer)}

    def create(self, request: Request) -> Response:
        """Corrects the costs of an account, or of one machine of it, on one day."""
        asked = self.body(request)
        account = self.named(ProviderAccount.objects.select_related("team"), field="account", pk=asked.pop("account"))
        machine = asked.pop("instance", None)
        instance = None if machine is None else self.named(Instance.objects.all(), field="instance", pk=machine)
        with naming_form_fields():
            made = create_adjustment(
                actor=self.actor(request),
                correction=Correction(account=account, instance=instance, **asked),
                now=timezone.now(),
            )
        return self.answer(made, status.HTTP_201_CREATED)

    @action(detail=True, methods=["post"])
    def reverse(self, request: Request, pk: str) -> Response:
        """Takes an adjustment back by another one of the same amount the other way round, in the same day. Answers the new one."""
        asked = self.body(request)
        with naming_form_fields():
            made = reverse_adjustment(
                actor=self.actor(request),
                adjustment=self.get_object(),
                reason=asked.get("reason", ""),
                now=timezone.now(),
            )
        return self.answer(made, status.HTTP_201_CREATED)
