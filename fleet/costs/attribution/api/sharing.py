"""How shared machines are split, and whose their users are, over the API."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.attribution.api.naming import WhoseFields, id_field, rows_named
from fleet.costs.attribution.models import UNIX_NAME_LENGTH, SplitMode, UnixUser
from fleet.costs.attribution.sharing import map_unix_user, set_split, unmap_unix_user
from fleet.inventory.models import Instance
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, IdsFilter
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

SPLIT_EXAMPLE = {"instance": 17, "team": "acme", "split": "holds"}
USER_EXAMPLE = {
    "id": 8,
    "team": "acme",
    "instance": None,
    "name": "ada",
    "owner": "alice",
    "project": None,
    "created_at": "2026-11-30T12:20:00Z",
}


@extend_schema_serializer(examples=[OpenApiExample("split", SPLIT_EXAMPLE)])
class MachineSplitSerializer(serializers.ModelSerializer[Instance]):
    instance = serializers.IntegerField(source="pk", help_text="A machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    split = serializers.ChoiceField(source="split.split", choices=SplitMode.choices)

    class Meta:
        model = Instance
        fields = list(SPLIT_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("by holds", {"instance": 17, "split": "holds"})])
class NewMachineSplit(Body[dict[str, Any]]):
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, help_text="A machine's id."
    )
    split = serializers.ChoiceField(choices=SplitMode.choices)


class MachineSplitViewSet(WritableRows[Instance]):
    """Machines of which people said how their money is split: all to one, among those who hold them, or by measured use.

    The others are split as their rule says, and without a rule not at all. Addressed by the machine's id; operators write.
    """

    http_method_names = ["get", "post", "delete", "head"]
    queryset = Instance.objects.filter(split__isnull=False).select_related("team", "split")
    serializer_class = MachineSplitSerializer
    orderings = ("id", "name")
    bodies = {"create": NewMachineSplit}

    def create(self, request: Request) -> Response:
        """Says how a machine is split, from the present hour on."""
        asked = self.body(request)
        machine = self.named(Instance.objects.select_related("team"), field="instance", pk=asked["instance"])
        set_split(actor=self.actor(request), instance=machine, split=asked["split"], now=timezone.now())
        return self.answer(self.get_queryset().get(pk=machine.pk), status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Leaves it to the machine's rule again, from the present hour on."""
        set_split(actor=self.actor(request), instance=self.get_object(), split="", now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_serializer(examples=[OpenApiExample("user", USER_EXAMPLE)])
class UnixUserSerializer(serializers.ModelSerializer[UnixUser]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        source="instance_id", allow_null=True, help_text="null: on all machines that say nothing else."
    )
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")

    class Meta:
        model = UnixUser
        fields = list(USER_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("everywhere", {"name": "ada", "owner": "alice"})])
class NewUnixUser(WhoseFields):
    """At least one of owner and project."""

    name = serializers.CharField(max_length=UNIX_NAME_LENGTH, help_text="As the machine shows it, or a number.")
    instance = id_field("A machine's id; left out: all machines.")  # type: ignore[assignment]  # declared fields leave the class


class UnixUserFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    name = django_filters.CharFilter(help_text="The whole name.")


class UnixUserViewSet(WritableRows[UnixUser]):
    """Whose the processes of users on shared machines are, where a machine is split by measured use. Operators write."""

    http_method_names = ["get", "post", "delete", "head"]
    queryset = UnixUser.objects.select_related("team", "owner", "project")
    serializer_class = UnixUserSerializer
    filterset_class = UnixUserFilter
    orderings = ("id", "name", "-created_at")
    bodies = {"create": NewUnixUser}

    def create(self, request: Request) -> Response:
        """Says whose a user is; of one that is known already it is changed. Hours that are not divided yet go to them."""
        team = one_team(request, role=Role.OPERATOR)
        asked = {"owner": None, **rows_named(team, self.body(request))}
        with naming_form_fields():
            row = map_unix_user(actor=self.actor(request), team=team, **asked)
        return self.answer(row, status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Forgets it: from the present hour on their use is nobody's."""
        unmap_unix_user(actor=self.actor(request), mapping=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)
