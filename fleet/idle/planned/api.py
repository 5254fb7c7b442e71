"""Planned acts over the API: people plan them, put them off and call them off."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.idle.planned.people import cancel, plan_by_hand, put_off, role_for
from fleet.inventory.api import plans
from fleet.inventory.api.plans import PlannedActionSerializer, Reasoned, ended
from fleet.inventory.models import Instance
from fleet.inventory.plans.models import PlannedAction, PlannedActionVerb
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID
from fleet.teams.models import Role
from fleet.teams.permissions import Access
from fleet.teams.writing import WritableRows

WHOLE = (status.HTTP_200_OK, PlannedActionSerializer)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "stop", {"instance": 17, "verb": "stop", "due_at": "2026-12-24T18:00:00Z", "reason": "over the holidays"}
        )
    ]
)
class NewPlan(Body[dict[str, Any]]):
    instance = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="A machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    verb = serializers.ChoiceField(choices=PlannedActionVerb.choices)
    due_at = serializers.DateTimeField(help_text="Its owner has half an hour from when they were told.")
    reason = serializers.CharField(max_length=300, help_text="Its owner reads it.")
    accept_loss = serializers.BooleanField(required=False, help_text="Data that this destroys may go.")


@extend_schema_serializer(examples=[OpenApiExample("later", {"until": "2026-12-24T22:00:00Z"})])
class PostponedPlan(Body[dict[str, Any]]):
    until = serializers.DateTimeField(help_text="At most seven days after it is due.")


class PlannedActionViewSet(WritableRows[PlannedAction]):
    """What is to be done with machines, and when. Stops are told to owners first; a hold puts them off. Operators plan, put off and call off; what budgets planned, admins."""

    http_method_names = ["get", "post", "head"]
    write_role = Role.OPERATOR
    queryset = PlannedAction.objects.select_related("team", "instance")
    serializer_class = PlannedActionSerializer
    filterset_class = plans.PlannedActionFilter
    orderings = ("due_at", "id")
    bodies = {"create": NewPlan, "cancel": Reasoned, "postpone": PostponedPlan}
    answers = {"create": (status.HTTP_201_CREATED, PlannedActionSerializer), "cancel": WHOLE, "postpone": WHOLE}

    def create(self, request: Request) -> Response:
        """Plans an act by hand. Its owner is told, unless they plan it themselves."""
        asked = self.body(request)
        rows = Instance.objects.select_related("account", "team")
        machine = self.named(rows, field="instance", pk=asked.pop("instance"))
        verb = PlannedActionVerb(asked.pop("verb"))
        with naming_form_fields():
            plan = plan_by_hand(actor=self.actor(request), instance=machine, verb=verb, now=timezone.now(), **asked)
        return self.answer(self.get_queryset().get(pk=plan.pk), status.HTTP_201_CREATED)

    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Calls it off, with a reason that is kept. Whatever planned it does not plan the same again."""
        planned, asked = self._mine(request), self.body(request)
        if not cancel(actor=self.actor(request), action=planned, reason=asked["reason"], now=timezone.now()):
            raise ended(_("It has ended already."))
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def postpone(self, request: Request, pk: str) -> Response:
        """Puts it off until then."""
        planned, asked = self._mine(request), self.body(request)
        with naming_form_fields():
            done = put_off(actor=self.actor(request), action=planned, until=asked["until"], now=timezone.now())
        if not done:
            raise ended(_("It has ended already, or is due later than that."))
        return self.answer(self.get_object())

    def _mine(self, request: Request) -> PlannedAction:
        """Raises 403 where only an admin has a word."""
        planned = self.get_object()
        needed = role_for(planned)
        if Access.of_request(request).roles[planned.team_id].rank < needed.rank:
            said = {"role": needed.label}
            raise PermissionDenied(_("This needs the role %(role)s or a token of that scope.") % said)
        return planned
