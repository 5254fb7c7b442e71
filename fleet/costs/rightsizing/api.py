"""Right-sizing over the API."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.rightsizing.look import dismiss_suggestion
from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.rightsizing.sizing.figures import Kind, Why
from fleet.costs.rightsizing.words import losses_words, why_words
from fleet.inventory.api.plans import Reasoned
from fleet.rest.filters import FlagFilter, IdsFilter, WordsFilter, words
from fleet.rest.problems import NamedProblem
from fleet.teams.writing import WritableRows

EXAMPLE = {
    "id": 12,
    "team": "acme",
    "instance": 17,
    "looked_at": "2026-11-17T04:07:00Z",
    "kind": "fewer",
    "saving_per_month": "1197.20",
    "currency": "USD",
    "change": {
        "kind": "fewer",
        "offer": 341,
        "provider": "runpod",
        "gpu_model": "A100 SXM 80 GB",
        "gpus": 3,
        "price_before": "6.56",
        "price_after": "4.92",
        "hours_before": "730.0",
        "hours_after": "730.0",
        "saving": "1197.20",
        "losses": [{"code": "new_machine", "bytes": 310000000000, "seconds": 1500}],
    },
    "losses": "a new machine: about 25 min to move 289 GiB",
    "others": [],
    "why": "",
    "why_words": "",
    "measured": {"gpus": 4, "working_at_once": 3, "utilization_mean": 0.82, "hours_per_month": "730.0"},
    "dismissed_at": None,
    "dismissed_by": None,
    "dismissed_reason": "",
}


@extend_schema_serializer(examples=[OpenApiExample("fewer GPUs", EXAMPLE)])
class RightSizingSerializer(serializers.ModelSerializer[RightSizing]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    instance = serializers.IntegerField(source="instance_id", help_text="A machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    kind = serializers.CharField(help_text="What would change; empty: nothing, see `why`.")
    saving_per_month = serializers.DecimalField(
        max_digits=16, decimal_places=2, allow_null=True, help_text="In `currency`; null: nothing is suggested."
    )
    change = serializers.DictField(help_text="The offer, its price and hours beside today's, money as text; {}: none.")
    losses = serializers.SerializerMethodField(help_text="What it costs or loses, in the language asked for.")
    others = serializers.ListField(
        child=serializers.DictField(), help_text="As `change`: what would save more, at a price."
    )
    why = serializers.CharField(help_text="Why the machine is left alone; empty: it is not.")
    why_words = serializers.SerializerMethodField(help_text="In the language asked for.")
    measured = serializers.DictField(help_text="What the 30 days showed; null: not read.")
    dismissed_by = serializers.CharField(
        source="dismissed_by.username",
        default=None,
        allow_null=True,
        help_text="A user name; null: a token, or nobody.",
    )

    class Meta:
        model = RightSizing
        fields = list(EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_losses(self, row: RightSizing) -> str:
        return losses_words(row.change.get("losses", []))

    @extend_schema_field({"type": "string"})
    def get_why_words(self, row: RightSizing) -> str:
        return why_words(row.why, row.told)


class RightSizingFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    kind = WordsFilter(choices=words(Kind), help_text="Kinds of change, separated by commas.")
    why = WordsFilter(choices=words(Why), help_text="Reasons to leave a machine alone, separated by commas.")
    open = FlagFilter(method="filter_open", help_text="Whether it is a suggestion that nobody put away.")

    def filter_open(self, rows: QuerySet[RightSizing], name: str, value: bool) -> QuerySet[RightSizing]:
        standing = {"dismissed_at": None, "saving_per_month__isnull": False}
        return rows.filter(**standing) if value else rows.exclude(**standing)


class RightSizingViewSet(WritableRows[RightSizing]):
    """One row a running machine: the cheaper offer that would do its measured work, or why none is suggested. Made anew once a day."""

    http_method_names = ["get", "post", "head"]
    queryset = RightSizing.objects.select_related("team", "instance", "dismissed_by")
    serializer_class = RightSizingSerializer
    filterset_class = RightSizingFilter
    orderings = ("-saving_per_month", "-looked_at", "id")
    bodies = {"dismiss": Reasoned}
    answers = {"dismiss": (status.HTTP_200_OK, RightSizingSerializer)}

    @action(detail=True, methods=["post"])
    def dismiss(self, request: Request, pk: str) -> Response:
        """Puts a suggestion away, with a reason that is kept. It comes back when it would save half as much again."""
        row, asked = self.get_object(), self.body(request)
        if not dismiss_suggestion(actor=self.actor(request), row=row, reason=asked["reason"], now=timezone.now()):
            raise NamedProblem(
                _("It was put away already, or is a suggestion no more."),
                code="ended",
                status_code=status.HTTP_409_CONFLICT,
                field=None,
            )
        return self.answer(self.get_object())
