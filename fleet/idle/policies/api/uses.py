"""How single machines are used, over the API."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.idle.policies.models import MachineUse, UseMode
from fleet.idle.policies.uses import extend_lease, set_machine_use
from fleet.inventory.models import Instance
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, WordsFilter
from fleet.teams.writing import WritableRows

KNOWN = Instance.objects.filter(use__isnull=False).select_related("team", "use__changed_by")
USE_EXAMPLE = {
    "instance": 17,
    "team": "acme",
    "mode": "batch",
    "lease_until": "2026-12-24T12:00:00Z",
    "changed_at": "2026-11-30T12:20:00Z",
    "changed_by": "bob",
}


@extend_schema_serializer(examples=[OpenApiExample("use", USE_EXAMPLE)])
class MachineUseSerializer(serializers.ModelSerializer[Instance]):
    instance = serializers.IntegerField(source="pk", help_text="A machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    mode = serializers.ChoiceField(
        source="use.mode", choices=UseMode.choices, allow_blank=True, help_text="Empty: as its policy says."
    )
    lease_until = serializers.DateTimeField(source="use.lease_until", allow_null=True, help_text="null: no end.")
    changed_at = serializers.DateTimeField(source="use.changed_at")
    changed_by = serializers.CharField(
        source="use.changed_by.username", default=None, allow_null=True, help_text="A user name; null for a token."
    )

    class Meta:
        model = Instance
        fields = list(USE_EXAMPLE)


class MachineUseFields(Body[dict[str, Any]]):
    mode = serializers.ChoiceField(choices=UseMode.choices, required=False, allow_blank=True)
    lease_until = serializers.DateTimeField(required=False, allow_null=True, help_text="Until when it may run; null: no end.")  # fmt: skip


@extend_schema_serializer(examples=[OpenApiExample("pinned", {"instance": 17, "mode": "pinned"})])
class NewMachineUse(MachineUseFields):
    """What is left out is said no more."""

    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, help_text="A machine's id."
    )


@extend_schema_serializer(examples=[OpenApiExample("as its policy says", {"mode": ""})])
class MachineUseChanges(MachineUseFields):
    """Only what is to change."""


@extend_schema_serializer(examples=[OpenApiExample("until then", {"until": "2026-12-24T12:00:00Z"})])
class LeaseExtension(Body[dict[str, Any]]):
    until = serializers.DateTimeField(help_text="Later than it may run now.")


class MachineUseFilter(django_filters.FilterSet):
    mode = WordsFilter("use__mode", choices=UseMode.choices, help_text="Modes, separated by commas.")


class MachineUseViewSet(WritableRows[Instance]):
    """Machines of which people said how they are used, or until when they may run. It outweighs their policy.

    Addressed by the machine's id; operators write.
    """

    # Of a machine of which nothing is said any more there is nothing to list.
    queryset = KNOWN.exclude(use__mode="", use__lease_until=None)
    serializer_class = MachineUseSerializer
    filterset_class = MachineUseFilter
    orderings = ("id", "name")
    bodies = {"create": NewMachineUse, "partial_update": MachineUseChanges, "extend": LeaseExtension}
    answers = {
        "create": (status.HTTP_201_CREATED, MachineUseSerializer),
        "partial_update": (status.HTTP_200_OK, MachineUseSerializer),
        "extend": (status.HTTP_200_OK, MachineUseSerializer),
    }

    def create(self, request: Request) -> Response:
        """Says how a machine is used, and until when it may run."""
        asked = self.body(request)
        machine = self.named(Instance.objects.select_related("team"), field="instance", pk=asked.pop("instance"))
        return self._set(request, machine, {"mode": "", "lease_until": None, **asked}, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest."""
        machine, asked = self.get_object(), self.body(request)
        use: MachineUse = machine.use
        return self._set(request, machine, {"mode": use.mode, "lease_until": use.lease_until, **asked})

    def destroy(self, request: Request, pk: str) -> Response:
        """Leaves the machine to its policy, without an end."""
        now = timezone.now()
        set_machine_use(actor=self.actor(request), instance=self.get_object(), mode="", lease_until=None, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @action(detail=True, methods=["post"])
    def extend(self, request: Request, pk: str) -> Response:
        """Lets it run longer."""
        machine, until = self.get_object(), self.body(request)["until"]
        with naming_form_fields():
            extend_lease(actor=self.actor(request), instance=machine, until=until, now=timezone.now())
        return self.answer(KNOWN.get(pk=machine.pk))

    def _set(self, request: Request, machine: Instance, said: dict[str, Any], code: int = status.HTTP_200_OK) -> Response:  # fmt: skip
        with naming_form_fields():
            set_machine_use(actor=self.actor(request), instance=machine, now=timezone.now(), **said)
        return self.answer(KNOWN.get(pk=machine.pk), code)
