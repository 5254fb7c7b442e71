"""Maintenance windows over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.api.examples import WINDOW_EXAMPLE
from fleet.alerts.models import MaintenanceWindow
from fleet.alerts.windows import add_window, cancel_window
from fleet.inventory.models import Instance, ProviderAccount
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter
from fleet.teams.models import Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows


@extend_schema_serializer(examples=[OpenApiExample("window", WINDOW_EXAMPLE)])
class WindowSerializer(serializers.ModelSerializer[MaintenanceWindow]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    created_by = serializers.CharField(
        source="created_by.username", default=None, allow_null=True, help_text="A user name; null for a token."
    )
    in_force = serializers.SerializerMethodField(help_text="Whether it keeps messages quiet now.")

    class Meta:
        model = MaintenanceWindow
        fields = list(WINDOW_EXAMPLE)

    @extend_schema_field({"type": "boolean"})
    def get_in_force(self, window: MaintenanceWindow) -> bool:
        return window.in_force(timezone.now())


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "of a machine", {"instance": 17, "starts_at": "2026-12-01T02:00:00Z", "ends_at": "2026-12-01T04:00:00Z"}
        )
    ]
)
class NewWindow(Body[dict[str, Any]]):
    """Of a machine, of an account, or, with neither, of the whole team."""

    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, required=False, help_text="A machine's id."
    )
    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, required=False, help_text="An account's id.")
    starts_at = serializers.DateTimeField(help_text="From this time on.")
    ends_at = serializers.DateTimeField(help_text="Before this time.")
    reason = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="For colleagues.")


class WindowFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    in_force = FlagFilter(method="filter_in_force", help_text="Whether it keeps messages quiet now.")

    def filter_in_force(self, windows: QuerySet[MaintenanceWindow], name: str, value: bool) -> QuerySet[Any]:
        now = timezone.now()
        in_force = Q(cancelled_at=None, starts_at__lte=now, ends_at__gt=now)
        return windows.filter(in_force if value else ~in_force)


class WindowViewSet(WritableRows[MaintenanceWindow]):
    """Times in which what happens is recorded and nobody is told. Alerts about money come through all the same."""

    http_method_names = ["get", "post", "delete", "head"]
    queryset = MaintenanceWindow.objects.select_related("team", "created_by")
    serializer_class = WindowSerializer
    filterset_class = WindowFilter
    orderings = ("-starts_at", "id", "ends_at")
    bodies = {"create": NewWindow}

    def create(self, request: Request) -> Response:
        """Plans a window. Without a machine or an account it is the team's: name it with `?team=` where you are in several."""
        asked = self.body(request)
        instance = self._named(Instance.objects.select_related("team"), asked, "instance")
        account = self._named(ProviderAccount.objects.select_related("team"), asked, "account")
        about = instance or account
        with naming_form_fields():
            window = add_window(
                actor=self.actor(request),
                team=about.team if about else self._team(request),
                now=timezone.now(),
                instance=instance,
                account=account,
                **asked,
            )
        return self.answer(window, status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Calls a window off. It stays listed, with `cancelled_at`; one that is over is not changed."""
        cancel_window(actor=self.actor(request), window=self.get_object(), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _named(self, rows: QuerySet[Any], asked: dict[str, Any], field: str) -> Any:
        pk = asked.pop(field, None)
        return None if pk is None else self.named(rows, field=field, pk=pk)

    def _team(self, request: Request) -> Team:
        return one_team(request, role=Role.OPERATOR)
