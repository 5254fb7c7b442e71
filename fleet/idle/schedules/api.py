"""Schedules over the API."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.idle.schedules.covering import clock_of
from fleet.idle.schedules.manage import MOST_MACHINES, ScheduleSaid, remove_schedule, save_schedule
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.schedules.shown import upcoming
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter
from fleet.teams.models import Project, Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

EXAMPLE = {
    "id": 3,
    "team": "acme",
    "name": "Nights",
    "enabled": True,
    "machines": [17],
    "project": None,
    "label_name": "",
    "label_value": "",
    "days": [0, 1, 2, 3, 4],
    "start_at": "08:00:00",
    "stop_at": "20:00:00",
    "time_zone": "",
    "holidays": "DE-BY",
    "notice_minutes": 30,
    "accept_loss": False,
    "since": "2026-11-24T10:05:00Z",
    "created_at": "2026-11-24T10:05:00Z",
    "next": [
        {"turn": "stop", "at": "2026-11-24T19:00:00Z"},
        {"turn": "start", "at": "2026-11-25T07:00:00Z"},
        {"turn": "stop", "at": "2026-11-25T19:00:00Z"},
    ],
}


class TurnSerializer(serializers.Serializer[Any]):
    turn = serializers.ChoiceField(choices=["start", "stop"])
    at = serializers.DateTimeField()


@extend_schema_serializer(examples=[OpenApiExample("schedule", EXAMPLE)])
class ScheduleSerializer(serializers.ModelSerializer[PowerSchedule]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    machines = serializers.SerializerMethodField(help_text="Ids of those named; empty: by project or label.")
    time_zone = serializers.CharField(help_text="Empty: the team's.")
    since = serializers.DateTimeField(help_text="What came before is none of it.")
    next = serializers.SerializerMethodField(help_text="The next three turns; empty while it is switched off.")

    class Meta:
        model = PowerSchedule
        fields = list(EXAMPLE)

    @extend_schema_field({"type": "array", "items": {"type": "integer"}})
    def get_machines(self, schedule: PowerSchedule) -> list[int]:
        return sorted(machine.pk for machine in schedule.machines.all())

    @extend_schema_field(TurnSerializer(many=True))
    def get_next(self, schedule: PowerSchedule) -> Any:
        edges = upcoming(clock_of(schedule), timezone.now()) if schedule.enabled else []
        return TurnSerializer([{"turn": edge.turn.value, "at": edge.at} for edge in edges], many=True).data


class ScheduleFields(Body[dict[str, Any]]):
    name = serializers.CharField(max_length=80, required=False)
    enabled = serializers.BooleanField(required=False)
    machines = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID), max_length=MOST_MACHINES, required=False,
        help_text="Ids; or leave them out and name a project or a label.",
    )  # fmt: skip
    project = serializers.CharField(max_length=60, required=False, allow_null=True, help_text="A project's slug.")
    label_name = serializers.CharField(max_length=80, required=False, allow_blank=True)
    label_value = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="Empty: any.")
    days = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=6), max_length=7, required=False, help_text="0 is Monday."
    )
    start_at = serializers.TimeField(required=False, allow_null=True, help_text="null: people start them.")
    stop_at = serializers.TimeField(
        required=False, allow_null=True, help_text="Not after the start: on the next day. null: people stop them."
    )
    time_zone = serializers.CharField(max_length=64, required=False, allow_blank=True, help_text="Empty: the team's.")
    holidays = serializers.CharField(
        max_length=10, required=False, allow_blank=True, help_text="A country, with its region, as in DE-BY."
    )
    notice_minutes = serializers.IntegerField(min_value=0, max_value=1440, required=False)
    accept_loss = serializers.BooleanField(required=False, help_text="Also where a stop loses data.")


@extend_schema_serializer(
    examples=[
        OpenApiExample("nights", {"name": "Nights", "machines": [17], "start_at": "08:00:00", "stop_at": "20:00:00"}),
    ]
)
class NewSchedule(ScheduleFields):
    name = serializers.CharField(max_length=80)


@extend_schema_serializer(examples=[OpenApiExample("later", {"stop_at": "22:00:00"})])
class ScheduleChanges(ScheduleFields):
    """Only what is to change. Turns before the change are none of the changed schedule's."""


class ScheduleFilter(django_filters.FilterSet):
    enabled = FlagFilter(help_text="Whether it is switched on.")


class PowerScheduleViewSet(WritableRows[PowerSchedule]):
    """Machines that are stopped and started by the clock, on days and in a time zone. Each turn is planned before it comes (`/planned-actions/`)."""

    write_role = Role.OPERATOR
    queryset = PowerSchedule.objects.select_related("team", "project").prefetch_related("machines").filter(removed_at=None)  # fmt: skip
    serializer_class = ScheduleSerializer
    filterset_class = ScheduleFilter
    orderings = ("id", "name", "-created_at")
    bodies = {"create": NewSchedule, "partial_update": ScheduleChanges}
    answers = {
        "create": (status.HTTP_201_CREATED, ScheduleSerializer),
        "partial_update": (status.HTTP_200_OK, ScheduleSerializer),
    }

    def create(self, request: Request) -> Response:
        """Adds a schedule, from Monday to Friday unless told otherwise. It counts from now on."""
        asked, team = self.body(request), one_team(request, role=Role.OPERATOR)
        with naming_form_fields():
            schedule = save_schedule(
                actor=self.actor(request), team=team, said=ScheduleSaid(**_named(team, asked)), now=timezone.now()
            )
        return self.answer(self.get_queryset().get(pk=schedule.pk), status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest. What it had planned is called off and planned anew."""
        schedule, asked = self.get_object(), self.body(request)
        said = ScheduleSaid.of(schedule)
        known = {name: getattr(said, name) for name in ScheduleSaid.__slots__}
        with naming_form_fields():
            save_schedule(
                actor=self.actor(request),
                team=schedule.team,
                said=ScheduleSaid(**{**known, **_named(schedule.team, asked)}),
                now=timezone.now(),
                schedule=schedule,
            )
        return self.answer(self.get_object())

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes it and calls off what it had planned. Machines stay as they are."""
        remove_schedule(actor=self.actor(request), schedule=self.get_object(), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _named(team: Team, asked: dict[str, Any]) -> dict[str, Any]:
    """Rows instead of names. Raises ValidationError for a project that is not of the team."""
    found = dict(asked)
    for name, kind in (("machines", frozenset), ("days", tuple)):
        if name in found:
            found[name] = kind(found[name])
    if asked.get("project"):
        found["project"] = Project.objects.filter(team=team, archived_at=None, slug=asked["project"]).first()
        if found["project"] is None:
            raise ValidationError({"project": _("Not found: %(ids)s.") % {"ids": asked["project"]}})
    return found
