"""Who hears what, over the API: the rules of a channel."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.api.examples import ROUTE_EXAMPLE
from fleet.alerts.api.owning import OperatesOrOwns, seen_by
from fleet.alerts.channels.manage import ChannelError, RouteWords, remove_route, save_route
from fleet.alerts.channels.models import Channel, Digest, Route
from fleet.alerts.models import Severity
from fleet.rest.bodies import Body, naming_fields
from fleet.rest.filters import BIGGEST_ID, IdsFilter
from fleet.rest.problems import not_found
from fleet.teams.models import Project
from fleet.teams.writing import WritableRows

WORDS = tuple(name for name in ROUTE_EXAMPLE if name not in {"id", "team", "channel", "projects"})


@extend_schema_field({"type": "string", "pattern": r"^([01]\d|2[0-3]):[0-5]\d$"})
class ClockField(serializers.TimeField):
    """Hours and minutes, as people set alarm clocks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(format="%H:%M", input_formats=["%H:%M"], **options)


@extend_schema_serializer(examples=[OpenApiExample("route", ROUTE_EXAMPLE)])
class RouteSerializer(serializers.ModelSerializer[Route]):
    team = serializers.CharField(source="channel.team.slug", help_text="Its address (slug).")
    severities = serializers.ListField(child=serializers.ChoiceField(choices=Severity.choices), help_text="None: all.")
    causes = serializers.ListField(child=serializers.CharField(), help_text="None: all.")
    quiet_from = ClockField(allow_null=True)
    quiet_until = ClockField(allow_null=True)

    class Meta:
        model = Route
        fields = list(ROUTE_EXAMPLE)


class RouteFields(Body[dict[str, Any]]):
    severities = serializers.ListField(
        child=serializers.ChoiceField(choices=Severity.choices), required=False, help_text="None: all of them."
    )
    causes = serializers.ListField(
        child=serializers.CharField(max_length=60),
        max_length=100,
        required=False,
        help_text="Kinds of trouble, as in `gpu.lost`, or families, as in `gpu`. None: all of them.",
    )
    projects = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID),
        max_length=100,
        required=False,
        help_text="Ids of projects whose machines it is about. None: all machines.",
    )
    only_escalated = serializers.BooleanField(required=False, help_text="Only what was escalated.")
    only_mine = serializers.BooleanField(
        required=False, help_text="Only machines whose owner is the channel's. For channels of one person."
    )
    digest = serializers.ChoiceField(choices=Digest.choices, required=False, help_text="How often it is told.")
    quiet_from = ClockField(required=False, allow_null=True, help_text="As in 22:00, on the clock of `time_zone`.")
    quiet_until = ClockField(required=False, allow_null=True, help_text="Over midnight where it is earlier.")
    urgent_breaks_quiet = serializers.BooleanField(required=False, help_text="Urgent alerts are told all the same.")
    language = serializers.ChoiceField(
        choices=settings.LANGUAGES, required=False, allow_blank=True, help_text="Empty: the reader's own, else English."
    )
    time_zone = serializers.CharField(
        max_length=64, required=False, allow_blank=True, help_text="As in `Europe/Berlin`. Empty: the reader's, else UTC."
    )  # fmt: skip


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "nights off", {"channel": 3, "severities": ["urgent"], "quiet_from": "22:00", "quiet_until": "07:00"}
        )
    ]
)
class NewRoute(RouteFields):
    channel = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="The channel that it is of.")


@extend_schema_serializer(examples=[OpenApiExample("once a day", {"digest": "daily"})])
class RouteChanges(RouteFields):
    """Only what is to change."""


class RouteFilter(django_filters.FilterSet):
    channel = IdsFilter(help_text="Ids of channels, separated by commas.")


class RouteViewSet(WritableRows[Route]):
    """Who hears what. The first route of a channel that wants an event tells it, once; a channel without routes is told nothing.

    Operators write those of the team's channels; every member writes those of their own.
    """

    queryset = Route.objects.select_related("channel__team", "channel__owner").prefetch_related("projects")
    serializer_class = RouteSerializer
    filterset_class = RouteFilter
    permission_classes = (OperatesOrOwns,)
    team_path = "channel__team"
    orderings = ("id",)
    bodies = {"create": NewRoute, "partial_update": RouteChanges}

    def get_queryset(self) -> QuerySet[Route]:
        rows = super().get_queryset()
        return rows if getattr(self, "swagger_fake_view", False) else rows.filter(seen_by(self.request, at="channel__"))

    def channel_of_write(self) -> Channel | None:
        if self.action == "create":
            data = self.request.data
            pk = data.get("channel") if isinstance(data, dict) else None
            return Channel.objects.filter(pk=pk).first() if isinstance(pk, int) and 0 < pk <= BIGGEST_ID else None
        route = Route.objects.select_related("channel").filter(pk=self.kwargs.get("pk", 0)).first()
        return route.channel if route else None

    def create(self, request: Request) -> Response:
        """Adds a route to a channel, behind those that it has."""
        asked = self.body(request)
        channel = self._channel(request, asked.pop("channel"))
        with naming_fields(ChannelError):
            words = RouteWords(**_with_projects(channel, asked))
            route = save_route(actor=self.actor(request), channel=channel, words=words)
        return self.answer(route, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest."""
        route, asked = self.get_object(), self.body(request)
        known = {name: getattr(route, name) for name in WORDS} | {"projects": list(route.projects.all())}
        with naming_fields(ChannelError):
            words = RouteWords(**{**known, **_with_projects(route.channel, asked)})
            save_route(actor=self.actor(request), channel=route.channel, words=words, route=route)
        return self.answer(self.get_object())

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes a route. A channel that has none left is told nothing."""
        remove_route(actor=self.actor(request), route=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _channel(self, request: Request, pk: int) -> Channel:
        """One that the caller writes. Raises 404 for what they do not see, 403 where they only read."""
        seen = Channel.objects.select_related("team", "owner").filter(seen_by(request))
        own = seen.filter(pk=pk, owner=request.user.pk).first() if self.channel_of_write() else None
        if own is not None and self.request.auth is None:
            return own
        return self.named(seen, field="channel", pk=pk)


def _with_projects(channel: Channel, asked: dict[str, Any]) -> dict[str, Any]:
    """Rows instead of ids. Raises 404 for one that is not of the channel's team."""
    if "projects" not in asked:
        return asked
    found = {row.pk: row for row in Project.objects.filter(team=channel.team_id, pk__in=asked["projects"])}
    if missing := sorted(set(asked["projects"]) - set(found)):
        raise not_found("projects", _("Not found: %(ids)s.") % {"ids": ", ".join(map(str, missing))})
    return {**asked, "projects": list(found.values())}
