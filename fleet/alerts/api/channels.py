"""Channels and what was sent through them, over the API: the same use-cases as the pages. Secrets go in and never come out."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.api.examples import CHANNEL_EXAMPLE, DELIVERY_EXAMPLE
from fleet.alerts.api.owning import OperatesOrOwns, seen_by
from fleet.alerts.channels.manage import ChannelError, add_channel, remove_channel, test_channel, update_channel
from fleet.alerts.channels.models import Channel, Delivery, DeliveryState
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.words import failure_text
from fleet.rest.bodies import Body, naming_fields
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter
from fleet.teams.models import APIToken, Role, User
from fleet.teams.permissions import one_team
from fleet.teams.scoping import TeamRows
from fleet.teams.writing import WritableRows

KINDS = [(name, name) for name in SENDERS]


@extend_schema_serializer(examples=[OpenApiExample("channel", CHANNEL_EXAMPLE)])
class ChannelSerializer(serializers.ModelSerializer[Channel]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    owner = serializers.CharField(
        source="owner.username", default=None, allow_null=True, help_text="A user name; null: it is the team's."
    )
    kind = serializers.ChoiceField(choices=KINDS)
    options = serializers.DictField(help_text="What was filled in, without secrets.")
    has_secret = serializers.SerializerMethodField(
        help_text="Whether addresses or keys are kept; they are never answered."
    )
    broken = serializers.CharField(help_text="A code of what somebody has to mend; empty: nothing.")
    failure = serializers.SerializerMethodField(help_text="`broken` in words, in the language asked for.")

    class Meta:
        model = Channel
        fields = list(CHANNEL_EXAMPLE)

    @extend_schema_field({"type": "boolean"})
    def get_has_secret(self, channel: Channel) -> bool:
        return bool(channel.secret)

    @extend_schema_field({"type": "string"})
    def get_failure(self, channel: Channel) -> str:
        return failure_text(channel.broken) if channel.broken else ""


class TypedFields(Body[dict[str, Any]]):
    typed = serializers.DictField(
        child=serializers.CharField(max_length=2_000, allow_blank=True, trim_whitespace=False),
        required=False,
        write_only=True,
        help_text="The fields of its kind, as on its page (`url`, `secret`, `to`, …). Secrets are kept encrypted.",
    )


@extend_schema_serializer(
    examples=[OpenApiExample("mail", {"kind": "email", "name": "On call", "typed": {"to": "oncall@example.org"}})]
)
class NewChannel(TypedFields):
    kind = serializers.ChoiceField(choices=KINDS, help_text="Which service it goes to.")
    name = serializers.CharField(max_length=80, help_text="Different from those of the team's others.")
    own = serializers.BooleanField(
        required=False, help_text="True: nobody but you sees it, and it ends when you leave. Not for tokens."
    )


@extend_schema_serializer(examples=[OpenApiExample("switched off", {"enabled": False})])
class ChannelChanges(TypedFields):
    """Only what is to change. Secrets that are left out or empty stay, unless the address changes."""

    name = serializers.CharField(max_length=80, required=False, help_text="A new name.")
    enabled = serializers.BooleanField(required=False, help_text="Whether messages go through it.")


@extend_schema_serializer(examples=[OpenApiExample("under way", {"delivery": 31}, status_codes=["202"])])
class TestStarted(serializers.Serializer[dict[str, int]]):
    delivery = serializers.IntegerField(help_text="Its line of `deliveries` says what came of it.")


class ChannelFilter(django_filters.FilterSet):
    kind = WordsFilter(choices=KINDS, help_text="Kinds, separated by commas.")
    enabled = FlagFilter(help_text="Whether messages go through it.")


class ChannelViewSet(WritableRows[Channel]):
    """Where messages about alerts go. A new one hears everything, by one route; `routes` says who hears what.

    Operators write the team's channels; every member writes their own.
    """

    queryset = Channel.objects.select_related("team", "owner")
    serializer_class = ChannelSerializer
    filterset_class = ChannelFilter
    orderings = ("id", "name", "created_at")
    permission_classes = (OperatesOrOwns,)
    bodies = {"create": NewChannel, "partial_update": ChannelChanges}
    answers = {"test": (status.HTTP_202_ACCEPTED, TestStarted)}

    def get_queryset(self) -> QuerySet[Channel]:
        rows = super().get_queryset()
        return rows if getattr(self, "swagger_fake_view", False) else rows.filter(seen_by(self.request))

    def channel_of_write(self) -> Channel | None:
        """A new one of one's own counts as one's own already."""
        if self.action == "create":
            return self._new_own()
        pk = self.kwargs.get("pk")
        return Channel.objects.filter(pk=pk).first() if pk is not None else None

    def _new_own(self) -> Channel | None:
        data, user = self.request.data, self.request.user
        if not isinstance(data, dict) or data.get("own") is not True or not isinstance(user, User):
            return None
        return Channel(team=one_team(self.request), owner=user)

    def create(self, request: Request) -> Response:
        """Adds a channel of the team, or one of your own: name the team with `?team=` where you are in several."""
        asked = self.body(request)
        owner = self._owner(request, wanted=asked.get("own", False))
        team = one_team(request, role=Role.VIEWER if owner else Role.OPERATOR)
        with naming_fields(ChannelError):
            channel = add_channel(
                actor=self.actor(request),
                team=team,
                kind=asked["kind"],
                name=asked["name"],
                typed=asked.get("typed", {}),
                owner=owner,
            )
        return self.answer(channel, status.HTTP_201_CREATED)

    def _owner(self, request: Request, *, wanted: bool) -> User | None:
        if not wanted:
            return None
        if isinstance(request.auth, APIToken) or not isinstance(request.user, User):
            raise ValidationError(
                {"own": _("A token is nobody: only a person who is signed in has channels of their own.")}
            )
        return request.user

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest."""
        channel, asked = self.get_object(), self.body(request)
        with naming_fields(ChannelError):
            update_channel(
                actor=self.actor(request),
                channel=channel,
                name=asked.get("name", channel.name),
                enabled=asked.get("enabled", channel.enabled),
                typed={**channel.options, **asked.get("typed", {})},
            )
        return self.answer(self.get_object())

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes a channel with the log of what was sent through it."""
        remove_channel(actor=self.actor(request), channel=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Sends a test message. It answers before the other side does: the delivery has the result seconds later."""
        with naming_fields(ChannelError):
            row = test_channel(actor=self.actor(request), channel=self.get_object(), now=timezone.now())
        return Response({"delivery": row.pk}, status=status.HTTP_202_ACCEPTED)


@extend_schema_serializer(examples=[OpenApiExample("delivery", DELIVERY_EXAMPLE)])
class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    team = serializers.CharField(source="channel.team.slug", help_text="Its address (slug).")
    error = serializers.CharField(help_text="A code; empty where nothing went wrong.")
    failure = serializers.SerializerMethodField(help_text="The error in words, in the language asked for.")

    class Meta:
        model = Delivery
        fields = list(DELIVERY_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_failure(self, row: Delivery) -> str:
        return failure_text(row.error) if row.error else ""


class DeliveryFilter(django_filters.FilterSet):
    channel = IdsFilter(help_text="Ids of channels, separated by commas.")
    alert = IdsFilter(help_text="Ids of alerts, separated by commas.")
    state = WordsFilter(choices=DeliveryState.choices, help_text="States, separated by commas.")
    since = MomentFilter("created_at", "gte", help_text="Written at or after this time.")
    until = MomentFilter("created_at", "lt", help_text="Written before this time.")


class DeliveryViewSet(TeamRows[Delivery]):
    """What was sent through channels, what waits, and what came of it."""

    queryset = Delivery.objects.select_related("channel__team")
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilter
    team_path = "channel__team"
    orderings = ("-created_at", "id")

    def get_queryset(self) -> QuerySet[Delivery]:
        rows = super().get_queryset()
        return rows if getattr(self, "swagger_fake_view", False) else rows.filter(seen_by(self.request, at="channel__"))
