"""Stops of idle machines over the API: how far each is, later, no and now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError as Unwanted
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

from fleet.idle.shutdown.models import OPEN, IdleStop, IdleStopEvent, IdleStopStage
from fleet.idle.shutdown.people import snooze_stop, stop_now, veto_stop
from fleet.idle.shutdown.words import event_words, stop_words, why_words
from fleet.rest.bodies import Body
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter
from fleet.rest.problems import NamedProblem
from fleet.teams.writing import WritableRows

EVENTS_SHOWN = 200
EXAMPLE = {
    "id": 12,
    "team": "acme",
    "instance": 17,
    "policy": "Lab",
    "verb": "stop",
    "stage": "grace",
    "says": "“stop” at 2026-11-30 08:30 unless it is used",
    "why": "",
    "quiet_since": "2026-11-30T07:00:00Z",
    "because": [{"code": "utilization", "subject": "", "value": 0.0, "limit": 2.0}],
    "price_per_hour": "32.772600",
    "currency": "USD",
    "since": "2026-11-30T08:00:10Z",
    "deadline": "2026-11-30T08:30:10Z",
    "delivered_at": "2026-11-30T08:00:10Z",
    "ordered_at": None,
    "orders": 0,
    "hook": "none",
    "operation": None,
    "snoozed_until": None,
    "snoozes": 0,
    "vetoed_at": None,
    "hurried_at": None,
    "began_at": "2026-11-30T08:00:00Z",
    "ended_at": None,
}
WHOLE_EXAMPLE = {
    **EXAMPLE,
    "events": [
        {
            "at": "2026-11-30T08:00:10Z",
            "kind": "grace",
            "says": "warned",
            "by": "",
            "detail": "",
            "values": {"deadline": "2026-11-30T08:30:10+00:00"},
        }
    ],
}


@extend_schema_serializer(examples=[OpenApiExample("stop", EXAMPLE)])
class IdleStopSerializer(serializers.ModelSerializer[IdleStop]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    policy = serializers.CharField(source="policy_name", help_text="As it was called when the stop began.")
    says = serializers.SerializerMethodField(help_text="Where it stands, in the language asked for.")
    why = serializers.SerializerMethodField(help_text="Why it was called off, in the language asked for.")
    deadline = serializers.DateTimeField(
        allow_null=True, help_text="When it stops unless something comes between; null until the warning has arrived."
    )
    delivered_at = serializers.DateTimeField(
        allow_null=True, help_text="When the warning had arrived; without that nothing is stopped."
    )
    orders = serializers.IntegerField(help_text="How often the provider was to be asked.")
    hook = serializers.CharField(help_text="The machine's own pre-stop action: `none`, `running`, `done` or `failed`.")
    operation = serializers.IntegerField(
        source="operation_id", allow_null=True, help_text="What was asked of its provider."
    )

    class Meta:
        model = IdleStop
        fields = list(EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_says(self, stop: IdleStop) -> str:
        return stop_words(stop)

    @extend_schema_field({"type": "string"})
    def get_why(self, stop: IdleStop) -> str:
        return why_words(stop.why) if stop.why else ""


class IdleStopEventSerializer(serializers.ModelSerializer[IdleStopEvent]):
    says = serializers.SerializerMethodField(help_text="In the language asked for.")
    by = serializers.CharField(source="by_label", help_text="Empty: Rackrent itself.")

    class Meta:
        model = IdleStopEvent
        fields = ["at", "kind", "says", "by", "detail", "values"]

    @extend_schema_field({"type": "string"})
    def get_says(self, event: IdleStopEvent) -> str:
        return event_words(event.kind)


@extend_schema_serializer(examples=[OpenApiExample("stop", WHOLE_EXAMPLE)])
class WholeIdleStopSerializer(IdleStopSerializer):
    events = serializers.SerializerMethodField(help_text="Newest first, 200 at most.")

    class Meta(IdleStopSerializer.Meta):
        fields = list(WHOLE_EXAMPLE)

    @extend_schema_field(IdleStopEventSerializer(many=True))
    def get_events(self, stop: IdleStop) -> Any:
        return IdleStopEventSerializer(stop.events.order_by("-at", "-pk")[:EVENTS_SHOWN], many=True).data


@extend_schema_serializer(examples=[OpenApiExample("later", {"until": "2026-11-30T12:00:00Z"})])
class Later(Body[dict[str, Any]]):
    until = serializers.DateTimeField(help_text="At most 24 hours from now. If it is idle then, it is warned of again.")


@extend_schema_serializer(examples=[OpenApiExample("no", {"reason": "the demo is tomorrow"})])
class No(Body[dict[str, Any]]):
    reason = serializers.CharField(max_length=200, help_text="Kept with the hold that keeps the machine for a week.")


@extend_schema_serializer(examples=[OpenApiExample("nothing to say", {})])
class Now(Body[dict[str, Any]]):
    """An empty object."""


class IdleStopFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    stage = WordsFilter(choices=IdleStopStage.choices, help_text="Stages, separated by commas.")
    open = FlagFilter(method="filter_open", help_text="Whether it has not ended.")
    since = MomentFilter("began_at", "gte", help_text="Begun at or after this time.")
    until = MomentFilter("began_at", "lt", help_text="Begun before this time.")

    def filter_open(self, rows: QuerySet[IdleStop], name: str, value: bool) -> QuerySet[IdleStop]:
        return rows.filter(OPEN) if value else rows.exclude(OPEN)


class IdleStopViewSet(WritableRows[IdleStop]):
    """Stops of idle machines: warned of, waited for, ordered, proved or called off. One of them has its `events`.

    Operators put them off, forbid them, or do not wait for their grace.
    """

    http_method_names = ["get", "post", "head"]
    queryset = IdleStop.objects.select_related("team", "instance")
    serializer_class = IdleStopSerializer
    filterset_class = IdleStopFilter
    orderings = ("-began_at", "id")
    bodies = {"snooze": Later, "veto": No, "stop_now": Now}
    answers = dict.fromkeys(bodies, (status.HTTP_200_OK, WholeIdleStopSerializer))

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return IdleStopSerializer if self.action == "list" else WholeIdleStopSerializer

    @action(detail=True, methods=["post"])
    def snooze(self, request: Request, pk: str) -> Response:
        """Keeps the machine until then; at most 24 hours at once, and ten times in a row."""
        stop, asked = self.get_object(), self.body(request)
        with refused():
            done = snooze_stop(actor=self.actor(request), stop=stop, until=asked["until"], now=timezone.now())
        return self._answered(done)

    @action(detail=True, methods=["post"])
    def veto(self, request: Request, pk: str) -> Response:
        """The machine must not be stopped: a hold keeps it for a week, or until it is released."""
        stop, asked = self.get_object(), self.body(request)
        return self._answered(
            veto_stop(actor=self.actor(request), stop=stop, reason=asked["reason"], now=timezone.now())
        )

    @action(detail=True, methods=["post"], url_path="stop-now")
    def stop_now(self, request: Request, pk: str) -> Response:
        """Does not wait for the rest of its grace. Its pre-stop action and the last look whether it is idle stay."""
        stop = self.get_object()
        self.body(request)
        with refused():
            done = stop_now(actor=self.actor(request), stop=stop, now=timezone.now())
        return self._answered(done)

    def _answered(self, done: bool) -> Response:
        if not done:
            raise NamedProblem(
                _("It has ended, or its provider was told already."),
                code="ended",
                status_code=status.HTTP_409_CONFLICT,
                field=None,
            )
        return self.answer(self.get_object())


@contextmanager
def refused() -> Iterator[None]:
    """What a use-case must not do, as the API says it: with the field that would change it."""
    try:
        yield
    except Unwanted as error:
        raise ValidationError(error.message_dict if hasattr(error, "error_dict") else error.messages) from None
