"""Typed charges over the API."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.charges.charges import NewCharge, add_charge, end_charge, remove_charge
from fleet.costs.charges.models import TypedCharge
from fleet.costs.charges.words import KINDS, UNITS
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.words import choices
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter, WordsFilter
from fleet.teams.writing import WritableRows

CHARGE_EXAMPLE = {
    "id": 5,
    "team": "acme",
    "account": 2,
    "instance": None,
    "kind": "network_volume",
    "name": "vol-data",
    "unit": "gb_month",
    "price": "0.0700000000",
    "quantity": "500.000000",
    "currency": "USD",
    "starts_at": "2026-11-01T00:00:00Z",
    "ends_at": None,
    "note": "",
    "created_by": "bob",
    "created_at": "2026-11-30T08:00:00Z",
    "removed_at": None,
    "removed_by": None,
    "removed_reason": "",
}
NEW_EXAMPLE = {
    "account": 2,
    "kind": "network_volume",
    "name": "vol-data",
    "unit": "gb_month",
    "price": "0.07",
    "quantity": "500",
    "currency": "USD",
    "starts_at": "2026-11-01T00:00:00Z",
}


def person(source: str) -> serializers.CharField:
    return serializers.CharField(
        source=f"{source}.username", default=None, allow_null=True, help_text="A user name; null for a token."
    )


@extend_schema_serializer(examples=[OpenApiExample("charge", CHARGE_EXAMPLE)])
class ChargeSerializer(serializers.ModelSerializer[TypedCharge]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    created_by = person("created_by")
    removed_by = person("removed_by")

    class Meta:
        model = TypedCharge
        fields = list(CHARGE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("a volume", NEW_EXAMPLE)])
class NewChargeBody(Body[dict[str, Any]]):
    """Charged is price x quantity for each `unit`; once: all of it over the time from `starts_at` to `ends_at`."""

    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="An account's id.")
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1,
        max_value=BIGGEST_ID,
        required=False,
        help_text="The id of a machine of it; else it is the account's.",
    )
    kind = serializers.ChoiceField(choices=choices(KINDS))
    name = serializers.CharField(max_length=120, help_text="As the bill names it: what of that kind is charged.")
    unit = serializers.ChoiceField(choices=choices(UNITS))
    price = serializers.DecimalField(max_digits=16, decimal_places=6, min_value=0)
    quantity = serializers.DecimalField(
        max_digits=14,
        decimal_places=3,
        min_value=Decimal("0.001"),
        required=False,
        help_text="GB, if priced by them; else how many.",
    )
    currency = serializers.CharField(
        validators=[RegexValidator(r"^[A-Z]{3}\Z", _("Give the three letters of a currency, as USD."))]
    )
    starts_at = serializers.DateTimeField(help_text="From this time on.")
    ends_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Before this time; null: it goes on."
    )
    note = serializers.CharField(max_length=300, required=False, allow_blank=True)


@extend_schema_serializer(examples=[OpenApiExample("an end", {"ends_at": "2026-12-01T00:00:00Z"})])
class EndBody(Body[dict[str, Any]]):
    ends_at = serializers.DateTimeField(help_text="Before this time.")


@extend_schema_serializer(examples=[OpenApiExample("a reason", {"reason": "Typed twice"})])
class RemoveBody(Body[dict[str, Any]]):
    reason = serializers.CharField(max_length=300, help_text="Totals of days that are over change with it.")


class ChargeFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    kind = WordsFilter(choices=choices(KINDS), help_text="Kinds, separated by commas.")
    running = FlagFilter(method="filter_running", help_text="Whether it is charged now.")
    removed = FlagFilter("removed_at", "isnull", exclude=True, help_text="Whether it was removed.")

    def filter_running(self, charges: QuerySet[TypedCharge], name: str, value: bool) -> QuerySet[Any]:
        now = timezone.now()
        running = Q(removed_at=None, starts_at__lte=now) & (Q(ends_at=None) | Q(ends_at__gt=now))
        return charges.filter(running if value else ~running)


class ChargeViewSet(WritableRows[TypedCharge]):
    """What no listing of machines shows, as people typed it. Never changed but for its end; what was wrong is removed, and stays listed."""

    http_method_names = ["get", "post", "head"]
    queryset = TypedCharge.objects.select_related("team", "created_by", "removed_by", "account", "instance").defer(
        "account__credentials"
    )
    serializer_class = ChargeSerializer
    filterset_class = ChargeFilter
    orderings = ("-starts_at", "id")
    bodies = {"create": NewChargeBody, "end": EndBody, "remove": RemoveBody}

    def create(self, request: Request) -> Response:
        """Adds a charge of an account, or of a machine of it."""
        asked = self.body(request)
        account = self.named(ProviderAccount.objects.select_related("team"), field="account", pk=asked.pop("account"))
        machine = asked.pop("instance", None)
        instance = None if machine is None else self.named(Instance.objects.all(), field="instance", pk=machine)
        with naming_form_fields():
            charge = add_charge(
                actor=self.actor(request),
                team=account.team,
                account=account,
                instance=instance,
                typed=NewCharge(**asked),
                now=timezone.now(),
            )
        charge.refresh_from_db()
        return self.answer(charge, status.HTTP_201_CREATED)

    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """Gives it an end. One that has ended, or was removed, stays as it is."""
        charge, asked = self.get_object(), self.body(request)
        with naming_form_fields():
            end_charge(actor=self.actor(request), charge=charge, now=timezone.now(), **asked)
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def remove(self, request: Request, pk: str) -> Response:
        """It was wrong: it counts for no day any more."""
        charge, asked = self.get_object(), self.body(request)
        with naming_form_fields():
            remove_charge(actor=self.actor(request), charge=charge, now=timezone.now(), **asked)
        return self.answer(self.get_object())
