"""Whose hours of machines are, and the past attributed again, over the API."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.attribution.again import Plan, plan_again, reattribute
from fleet.costs.attribution.api.naming import WhoseFields, id_field, rows_named
from fleet.costs.attribution.models import AttributionSource, AttributionSpan, Reattribution
from fleet.inventory.models import Instance
from fleet.rest.bodies import naming_form_fields
from fleet.rest.filters import BIGGEST_ID, IdsFilter, MomentFilter, WordsFilter
from fleet.teams.models import Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.scoping import TeamRows
from fleet.teams.writing import WritableRows

CENT = Decimal("0.01")
MOST_NAMED = 500
SPAN_EXAMPLE = {
    "id": 91,
    "team": "acme",
    "instance": 17,
    "start": "2026-11-20T10:00:00Z",
    "end": None,
    "project": "vision",
    "owner": "bob",
    "job": "llama-70b",
    "labels": {"purpose": "pretraining"},
    "split": "whole",
    "source": "rule",
    "rule": 5,
    "reattribution": None,
    "note": "",
    "created_at": "2026-11-20T10:00:31Z",
}
MONEY_EXAMPLE = [{"project": 3, "owner": None, "amounts": {"USD": "240.00"}}]
AGAIN_EXAMPLE = {
    "id": 2,
    "team": "acme",
    "instances": [17],
    "rule": None,
    "start": "2026-11-20T10:00:00Z",
    "until": "2026-11-25T00:00:00Z",
    "project": "vision",
    "owner": None,
    "reason": "It was for Vision.",
    "created_by": "alice",
    "created_at": "2026-11-30T12:20:00Z",
    "before": [{"project": None, "owner": None, "amounts": {"USD": "240.00"}}],
    "after": MONEY_EXAMPLE,
}
PLAN_EXAMPLE = {
    "instances": [17],
    "exact": True,
    "by_whose": [{"project": None, "owner": None, "amounts": {"USD": "240.00"}}],
    "moved": {"USD": "240.00"},
}


def cents(amounts: Any) -> dict[str, str]:
    """Exact until here."""
    return {currency: str(Decimal(amount).quantize(CENT, ROUND_HALF_EVEN)) for currency, amount in amounts.items()}


class AttributedMoneySerializer(serializers.Serializer[Any]):
    project = serializers.IntegerField(allow_null=True, help_text="A project's id; null: none.")
    owner = serializers.IntegerField(allow_null=True, help_text="A person's id; null: nobody.")
    amounts = serializers.DictField(child=serializers.CharField(), help_text="By currency, as charged.")


@extend_schema_serializer(examples=[OpenApiExample("span", SPAN_EXAMPLE)])
class AttributionSpanSerializer(serializers.ModelSerializer[AttributionSpan]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    start = serializers.DateTimeField(source="period.lower", help_text="A full hour of UTC.")
    end = serializers.DateTimeField(source="period.upper", allow_null=True, help_text="null: it goes on.")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")
    labels = serializers.DictField(child=serializers.CharField(), help_text="People's, and those of the rule.")
    rule = serializers.IntegerField(source="rule_id", allow_null=True, help_text="The rule that decided it.")
    reattribution = serializers.IntegerField(source="reattribution_id", allow_null=True)

    class Meta:
        model = AttributionSpan
        fields = list(SPAN_EXAMPLE)


class SpanFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    source = WordsFilter(choices=AttributionSource.choices, help_text="What decided, separated by commas.")
    since = MomentFilter("period__endswith", "gt", method="filter_since", help_text="Goes on after this time.")
    until = MomentFilter("period__startswith", "lt", help_text="Begins before this time.")

    def filter_since(self, spans: QuerySet[AttributionSpan], name: str, value: Any) -> QuerySet[AttributionSpan]:
        return spans.filter(period__endswith__gt=value) | spans.filter(period__upper_inf=True)


class AttributionSpanViewSet(TeamRows[AttributionSpan]):
    """Whose the hours of each machine are, and why. Nothing of the past changes but by a re-attribution."""

    queryset = AttributionSpan.objects.select_related("instance__team", "project", "owner")
    serializer_class = AttributionSpanSerializer
    filterset_class = SpanFilter
    team_path = "instance__team"
    orderings = ("id", "-created_at")


@extend_schema_serializer(examples=[OpenApiExample("re-attribution", AGAIN_EXAMPLE)])
class ReattributionSerializer(serializers.ModelSerializer[Reattribution]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    instances = serializers.SerializerMethodField(help_text="Machines whose hours were given to somebody else.")
    rule = serializers.IntegerField(source="rule_id", allow_null=True, help_text="The rule that chose its machines.")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")
    created_by = serializers.CharField(source="actor_label", help_text="A user name or a token.")
    before = serializers.SerializerMethodField(help_text="What the days that it touches cost by project and owner.")
    after = serializers.SerializerMethodField(help_text="And what they cost since; null until they are summed again.")

    class Meta:
        model = Reattribution
        fields = list(AGAIN_EXAMPLE)

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_instances(self, entry: Reattribution) -> list[int]:
        return [machine.pk for machine in entry.instances.all()]

    @extend_schema_field(AttributedMoneySerializer(many=True))
    def get_before(self, entry: Reattribution) -> Any:
        return [{**line, "amounts": cents(line["amounts"])} for line in entry.before]

    @extend_schema_field(AttributedMoneySerializer(many=True, allow_null=True))
    def get_after(self, entry: Reattribution) -> Any:
        return None if entry.after is None else [{**line, "amounts": cents(line["amounts"])} for line in entry.after]


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "of a machine",
            {
                "instances": [17],
                "start": "2026-11-20T10:00:00Z",
                "until": "2026-11-25T00:00:00Z",
                "project": "vision",
                "reason": "It was for Vision.",
            },
        )
    ]
)
class NewReattribution(WhoseFields):
    """Machines, or a rule whose machines are meant. Without project and owner: nobody."""

    instances = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID),
        max_length=MOST_NAMED,
        required=False,
        help_text="Ids of machines.",
    )
    rule = id_field("A rule's id: all that it matches and that nobody gave to somebody.")
    start = serializers.DateTimeField(help_text="A full hour of UTC.")
    until = serializers.DateTimeField(help_text="A full hour of UTC that is over.")
    reason = serializers.CharField(max_length=300, help_text="Kept with it and in the audit log.")


@extend_schema_serializer(examples=[OpenApiExample("plan", PLAN_EXAMPLE)])
class ReattributionPlanSerializer(serializers.Serializer[Plan]):
    instances = serializers.ListField(child=serializers.IntegerField())
    exact = serializers.BooleanField(
        source="estimate.is_exact",
        help_text="Whole days of the team; else parts of a day are reckoned by their length.",
    )
    by_whose = serializers.SerializerMethodField(help_text="What the hours cost by project and owner.")
    moved = serializers.SerializerMethodField(help_text="What would change hands, by currency.")

    @extend_schema_field(AttributedMoneySerializer(many=True))
    def get_by_whose(self, plan: Plan) -> Any:
        return [
            {"project": project, "owner": owner, "amounts": cents(amounts)}
            for (project, owner), amounts in plan.estimate.by_whose.items()
        ]

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_moved(self, plan: Plan) -> dict[str, str]:
        return cents(plan.estimate.moved_to(plan.target))


class ReattributionFilter(django_filters.FilterSet):
    instance = IdsFilter("instances", help_text="Ids of machines, separated by commas.")


class ReattributionViewSet(WritableRows[Reattribution]):
    """Hours of the past that were given to somebody else on purpose: who did it, why, and what it moved. Admins make them."""

    http_method_names = ["get", "post", "head"]
    write_role = Role.ADMIN
    queryset = Reattribution.objects.select_related("team", "project", "owner").prefetch_related(
        Prefetch("instances", Instance.objects.only("pk").order_by("pk"))
    )
    serializer_class = ReattributionSerializer
    filterset_class = ReattributionFilter
    orderings = ("-created_at", "id")
    bodies = {"create": NewReattribution, "preview": NewReattribution}
    answers = {
        "create": (status.HTTP_201_CREATED, ReattributionSerializer),
        "preview": (status.HTTP_200_OK, ReattributionPlanSerializer),
    }

    def create(self, request: Request) -> Response:
        """Rewrites whose the hours are, and keeps this entry of it. The sums follow within minutes."""
        team, asked = self._asked(request)
        with naming_form_fields():
            entry = reattribute(actor=self.actor(request), team=team, now=timezone.now(), **asked)
        return self.answer(self.get_queryset().get(pk=entry.pk), status.HTTP_201_CREATED)

    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """What it would move. Nothing is saved."""
        team, asked = self._asked(request)
        with naming_form_fields():
            plan = plan_again(team=team, now=timezone.now(), **asked)
        return Response(ReattributionPlanSerializer(plan).data)

    def _asked(self, request: Request) -> tuple[Team, dict[str, Any]]:
        team = one_team(request, role=Role.ADMIN)
        return team, {"project": None, "owner": None, **rows_named(team, self.body(request))}
