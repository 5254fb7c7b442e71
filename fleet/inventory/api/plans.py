"""What rooms above have laid down for machines: launches that are refused, and acts that are planned."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.plans.actions import ended_words
from fleet.inventory.plans.blocks import lift_block
from fleet.inventory.plans.gate import covers_words
from fleet.inventory.plans.models import LaunchBlock, PlannedAction, PlannedActionState
from fleet.inventory.plans.reasons import reason_text
from fleet.rest.bodies import Body
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter
from fleet.rest.problems import NamedProblem
from fleet.teams.models import Role
from fleet.teams.writing import WritableRows

BLOCK_EXAMPLE = {
    "id": 4,
    "team": "acme",
    "account": None,
    "project": "vision",
    "owner": None,
    "covers": "Machines of the project Vision",
    "source": "budget:7",
    "reason": "the budget Vision of $5,000.00 for November 2026 is spent",
    "created_at": "2026-11-24T10:05:00Z",
    "lifted_at": None,
    "lifted_reason": "",
}
ACTION_EXAMPLE = {
    "id": 9,
    "team": "acme",
    "instance": 17,
    "verb": "stop",
    "due_at": "2026-11-25T10:05:00Z",
    "source": "budget:7",
    "reason": "the budget Vision of $5,000.00 for November 2026 is spent",
    "state": "planned",
    "notified_at": "2026-11-24T10:05:12Z",
    "waits_for": "",
    "attempts": 0,
    "error_kind": "",
    "error_detail": "",
    "created_at": "2026-11-24T10:05:00Z",
    "ended_at": None,
    "ended_reason": "",
}


@extend_schema_serializer(examples=[OpenApiExample("block", BLOCK_EXAMPLE)])
class LaunchBlockSerializer(serializers.ModelSerializer[LaunchBlock]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    account = serializers.IntegerField(source="account_id", allow_null=True, help_text="null: of any account.")
    project = serializers.CharField(
        source="project.slug", default=None, allow_null=True, help_text="Its slug; null: of any project, or of none."
    )
    owner = serializers.CharField(
        source="owner.username", default=None, allow_null=True, help_text="A user name; null: of anybody."
    )
    covers = serializers.SerializerMethodField(help_text="In the language asked for.")
    source = serializers.CharField(help_text="Who wrote it, as in `budget:7`.")  # type: ignore[assignment]  # declared fields leave the class

    reason = serializers.SerializerMethodField(help_text="In the language asked for.")

    class Meta:
        model = LaunchBlock
        fields = list(BLOCK_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_reason(self, block: LaunchBlock) -> str:
        return reason_text(block)

    @extend_schema_field({"type": "string"})
    def get_covers(self, block: LaunchBlock) -> str:
        return covers_words(block)


@extend_schema_serializer(examples=[OpenApiExample("planned stop", ACTION_EXAMPLE)])
class PlannedActionSerializer(serializers.ModelSerializer[PlannedAction]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    source = serializers.CharField(help_text="Who planned it, as in `budget:7`.")  # type: ignore[assignment]  # declared fields leave the class
    notified_at = serializers.DateTimeField(
        allow_null=True, help_text="When a message about it reached its owner; without one nothing is carried out."
    )
    waits_for = serializers.CharField(help_text="What keeps it back though it is due: held, operation_open, hook.")
    ended_reason = serializers.SerializerMethodField(help_text="Why it was called off; empty while it stands.")

    reason = serializers.SerializerMethodField(help_text="In the language asked for.")

    class Meta:
        model = PlannedAction
        fields = list(ACTION_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_reason(self, action: PlannedAction) -> str:
        return reason_text(action)

    @extend_schema_field({"type": "string"})
    def get_ended_reason(self, action: PlannedAction) -> str:
        return ended_words(action)


@extend_schema_serializer(examples=[OpenApiExample("why", {"reason": "paid for by the customer"})])
class Reasoned(Body[dict[str, Any]]):
    reason = serializers.CharField(max_length=300, help_text="Kept with it and in the audit log.")


class LaunchBlockFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas: blocks that name one of them.")
    in_force = FlagFilter(method="filter_in_force", help_text="Whether it is not lifted.")

    def filter_in_force(self, rows: QuerySet[LaunchBlock], name: str, value: bool) -> QuerySet[LaunchBlock]:
        return rows.filter(lifted_at__isnull=value)


class PlannedActionFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    state = WordsFilter(choices=PlannedActionState.choices, help_text="States, separated by commas.")
    since = MomentFilter("due_at", "gte", help_text="Due at or after this time.")
    until = MomentFilter("due_at", "lt", help_text="Due before this time.")


class LaunchBlockViewSet(WritableRows[LaunchBlock]):
    """Launches and starts that are refused, by whom and why. An admin may launch all the same with `override_reason`.

    They are written and lifted by what they come from: a budget lifts its own when it is raised, ends or is removed.
    """

    http_method_names = ["get", "post", "head"]
    write_role = Role.ADMIN
    queryset = LaunchBlock.objects.select_related("team", "project", "owner", "account")
    serializer_class = LaunchBlockSerializer
    filterset_class = LaunchBlockFilter
    orderings = ("-created_at", "id")
    bodies = {"lift": Reasoned}
    answers = {"lift": (status.HTTP_200_OK, LaunchBlockSerializer)}

    @action(detail=True, methods=["post"])
    def lift(self, request: Request, pk: str) -> Response:
        """Lets launches pass again, with a reason that is kept. A budget writes it anew in its next period, or when it is changed."""
        block, asked = self.get_object(), self.body(request)
        if not lift_block(actor=self.actor(request), block=block, reason=asked["reason"], now=timezone.now()):
            raise ended(_("It was lifted already."))
        return self.answer(self.get_object())


def ended(text: str) -> NamedProblem:
    return NamedProblem(text, code="ended", status_code=status.HTTP_409_CONFLICT, field=None)
