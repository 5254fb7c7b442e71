"""Budgets over the API."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.budgets.manage import BudgetWords, add_budget, remove_budget, update_budget
from fleet.costs.budgets.models import Budget, BudgetPeriod, Crossing
from fleet.costs.budgets.shown import RELATED, BudgetLine, lines_of
from fleet.inventory.models import ProviderAccount
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, IdsFilter, WordsFilter
from fleet.teams.models import Project, Role, Team, User
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

BUDGET_EXAMPLE = {
    "id": 7,
    "team": "acme",
    "name": "Vision",
    "project": "vision",
    "owner": None,
    "account": None,
    "amount": "5000.00",
    "currency": "USD",
    "period": "month",
    "starts_on": None,
    "ends_on": None,
    "actual_thresholds": [50, 80, 100],
    "forecast_thresholds": [100],
    "hard": True,
    "stops": False,
    "notice_hours": 24,
    "created_at": "2026-11-01T09:00:00Z",
    "changed_at": "2026-11-01T09:00:00Z",
    "judged_at": "2026-11-24T10:05:00Z",
    "will_end": "5931.20",
}
WHOLE_EXAMPLE = {
    **BUDGET_EXAMPLE,
    "spent": "4012.40",
    "closed": False,
    "reached": [
        {
            "basis": "actual",
            "percent": 80,
            "at": "2026-11-24T10:05:00Z",
            "period_from": "2026-11-01",
            "amount": "5000.00",
            "spent": "4012.40",
            "will_end": "5931.20",
            "fell_back_at": None,
        }
    ],
}
MOST_REACHED = 100


def cents(amount: Decimal | str) -> str:
    """Exact until here."""
    return str(Decimal(amount).quantize(Decimal("0.01"), ROUND_HALF_EVEN))


@extend_schema_serializer(examples=[OpenApiExample("budget", BUDGET_EXAMPLE)])
class BudgetSerializer(serializers.ModelSerializer[Budget]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")
    account = serializers.IntegerField(source="account_id", allow_null=True, help_text="An account's id.")
    actual_thresholds = serializers.ListField(child=serializers.IntegerField(), help_text="Percent of `amount`, spent.")
    forecast_thresholds = serializers.ListField(
        child=serializers.IntegerField(), help_text="Percent of `amount`, at the end of the period."
    )
    will_end = serializers.SerializerMethodField(
        help_text="What its period will have cost, as last judged; null: nothing to tell it from."
    )

    class Meta:
        model = Budget
        fields = list(BUDGET_EXAMPLE)

    @extend_schema_field({"type": ["string", "null"], "format": "decimal"})
    def get_will_end(self, budget: Budget) -> str | None:
        kept = budget.outlook.get("will_end")
        return None if kept is None else cents(kept)


class CrossingSerializer(serializers.ModelSerializer[Crossing]):
    spent = serializers.DecimalField(max_digits=30, decimal_places=2)
    will_end = serializers.DecimalField(max_digits=30, decimal_places=2, allow_null=True)

    class Meta:
        model = Crossing
        fields = ["basis", "percent", "at", "period_from", "amount", "spent", "will_end", "fell_back_at"]


@extend_schema_serializer(examples=[OpenApiExample("budget", WHOLE_EXAMPLE)])
class WholeBudgetSerializer(BudgetSerializer):
    spent = serializers.SerializerMethodField(help_text="In its period so far.")
    closed = serializers.SerializerMethodField(help_text="Whether it keeps launches back now.")
    reached = serializers.SerializerMethodField(
        help_text="Thresholds that were reached, the newest first; at most 100."
    )

    class Meta(BudgetSerializer.Meta):
        fields = list(WHOLE_EXAMPLE)

    _found: BudgetLine | None = None

    @extend_schema_field({"type": "string", "format": "decimal"})
    def get_spent(self, budget: Budget) -> str:
        return cents(self._line(budget).spent)

    @extend_schema_field({"type": "boolean"})
    def get_closed(self, budget: Budget) -> bool:
        return self._line(budget).closed

    @extend_schema_field(CrossingSerializer(many=True))
    def get_reached(self, budget: Budget) -> Any:
        return CrossingSerializer(budget.crossings.order_by("-at", "-pk")[:MOST_REACHED], many=True).data

    def _line(self, budget: Budget) -> BudgetLine:
        """Read once, though two fields are of it."""
        if self._found is None:
            self._found = lines_of([budget], timezone.now())[0]
        return self._found


class BudgetFields(Body[dict[str, Any]]):
    name = serializers.CharField(max_length=80, required=False, allow_blank=True, help_text="Empty: whose it is.")
    project = serializers.CharField(max_length=60, required=False, allow_null=True, help_text="A project's slug.")
    owner = serializers.CharField(max_length=150, required=False, allow_null=True, help_text="A member's user name.")
    account = serializers.IntegerField(
        min_value=1, max_value=BIGGEST_ID, required=False, allow_null=True, help_text="An account's id."
    )
    amount = serializers.DecimalField(max_digits=14, decimal_places=2, required=False)
    currency = serializers.CharField(max_length=3, required=False, help_text="Left out: the team's.")
    period = serializers.ChoiceField(choices=BudgetPeriod.choices, required=False)
    starts_on = serializers.DateField(required=False, allow_null=True, help_text="Of a custom period: its first day.")
    ends_on = serializers.DateField(required=False, allow_null=True, help_text="The day on which it is over.")
    actual_thresholds = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=1000), max_length=10, required=False
    )
    forecast_thresholds = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=1000), max_length=10, required=False
    )
    hard = serializers.BooleanField(required=False, help_text="Once it is spent, launch and start nothing more.")
    stops = serializers.BooleanField(required=False, help_text="And plan stops of its machines. Only if it is hard.")
    notice_hours = serializers.IntegerField(min_value=1, max_value=720, required=False)


@extend_schema_serializer(
    examples=[OpenApiExample("of a project", {"amount": "5000.00", "project": "vision", "hard": True})]
)
class NewBudget(BudgetFields):
    amount = serializers.DecimalField(max_digits=14, decimal_places=2, help_text="Above zero.")


@extend_schema_serializer(examples=[OpenApiExample("raise it", {"amount": "8000.00"})])
class BudgetChanges(BudgetFields):
    """Only what is to change. Any change arms all thresholds anew."""


class BudgetFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    period = WordsFilter(choices=BudgetPeriod.choices, help_text="Kinds of period, separated by commas.")


class BudgetViewSet(WritableRows[Budget]):
    """What may be spent in a month or in days of one's own: by a team, a project, a person, on an account. Admins write them.

    Thresholds are judged every five minutes; each fires once a period. One of them has what is spent and what was reached.
    """

    write_role = Role.ADMIN
    queryset = Budget.objects.select_related(*RELATED).filter(removed_at=None)
    serializer_class = BudgetSerializer
    filterset_class = BudgetFilter
    orderings = ("id", "name", "-created_at")
    bodies = {"create": NewBudget, "partial_update": BudgetChanges}
    answers = {
        "create": (status.HTTP_201_CREATED, BudgetSerializer),
        "partial_update": (status.HTTP_200_OK, BudgetSerializer),
    }

    def get_serializer_class(self) -> type[BudgetSerializer]:
        return WholeBudgetSerializer if self.action == "retrieve" else BudgetSerializer

    def create(self, request: Request) -> Response:
        """Adds a budget and judges it at once. Without a project, person or account it is the whole team's."""
        asked, team = self.body(request), one_team(request, role=Role.ADMIN)
        words = BudgetWords(**{"currency": team.currency, **self._named(team, asked)})
        with naming_form_fields():
            budget = add_budget(actor=self.actor(request), team=team, words=words, now=timezone.now())
        return self.answer(self.get_queryset().get(pk=budget.pk), status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent, keeps the rest, and judges it at once."""
        budget, asked = self.get_object(), self.body(request)
        known = {name: getattr(budget, name) for name in BudgetWords.__slots__}
        words = BudgetWords(**{**known, **self._named(budget.team, asked)})
        with naming_form_fields():
            update_budget(actor=self.actor(request), budget=budget, words=words, now=timezone.now())
        return self.answer(self.get_object())

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes it, lifts what it blocks and calls off what it planned."""
        remove_budget(actor=self.actor(request), budget=self.get_object(), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _named(self, team: Team, asked: dict[str, Any]) -> dict[str, Any]:
        """Rows instead of names. Raises ValidationError for what is not of the team."""
        ways: dict[str, tuple[QuerySet[Any], str]] = {
            "project": (Project.objects.filter(team=team, archived_at=None), "slug"),
            "owner": (User.objects.filter(memberships__team=team), "username"),
            "account": (ProviderAccount.objects.filter(team=team, disconnected_at=None), "pk"),
        }
        found = dict(asked)
        for field, (rows, key) in ways.items():
            if asked.get(field) is None:
                continue
            found[field] = rows.filter(**{key: asked[field]}).first()
            if found[field] is None:
                raise ValidationError({field: _("Not found: %(ids)s.") % {"ids": asked[field]}})
        return found
