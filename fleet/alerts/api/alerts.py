"""Alerts over the API: what is wrong, with its evidence and its course, and what people do about it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.alerts.api.examples import ALERT_EXAMPLE, WHOLE_ALERT_EXAMPLE
from fleet.alerts.escalation import find_member
from fleet.alerts.history import EVENTS_SHOWN
from fleet.alerts.models import Alert, AlertEvent, Severity, Signal
from fleet.alerts.people import acknowledge_alert, escalate_alert, resolve_note, snooze_alert, wake_alert
from fleet.alerts.words import remedy_of, signal_words, title_of, why_of
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import IdsFilter, MomentFilter, WordsFilter
from fleet.teams.writing import WritableRows

STATES = [("open", "open"), ("snoozed", "snoozed"), ("closed", "closed")]
# Signals of an alert that has gone on for weeks; the newest are answered.
SIGNALS_SHOWN = 200


@extend_schema_serializer(examples=[OpenApiExample("alert", ALERT_EXAMPLE)])
class AlertSerializer(serializers.ModelSerializer[Alert]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    title = serializers.SerializerMethodField(help_text="In the language asked for.")
    why = serializers.SerializerMethodField(help_text="The evidence that weighs most, in the language asked for.")
    remedy = serializers.SerializerMethodField(help_text="What to do, in the language asked for.")
    state = serializers.SerializerMethodField()
    closed_why = serializers.CharField(help_text="A code; empty while it is open.")
    acknowledged_by = serializers.CharField(
        source="acknowledged_by.username", default=None, allow_null=True, help_text="A user name; null for a token."
    )
    escalated_to = serializers.CharField(
        source="escalated_to.username", default=None, allow_null=True,
        help_text="A user name; null: it was not, or to whoever stands behind the first readers.",
    )  # fmt: skip
    snoozes_until_worse = serializers.BooleanField(help_text="Snoozed without an end: it comes back if it gets worse.")
    spent = serializers.SerializerMethodField(
        help_text="Money while it lasted, in `currency`; null: no price is known."
    )

    class Meta:
        model = Alert
        fields = list(ALERT_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_title(self, alert: Alert) -> str:
        return title_of(alert)

    @extend_schema_field({"type": "string"})
    def get_why(self, alert: Alert) -> str:
        return why_of(alert) if alert.evidence else ""

    @extend_schema_field({"type": "string"})
    def get_remedy(self, alert: Alert) -> str:
        return remedy_of(alert)

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, alert: Alert) -> str:
        return "closed" if alert.closed_at else "snoozed" if alert.is_snoozed else "open"

    @extend_schema_field({"type": ["string", "null"], "format": "decimal"})
    def get_spent(self, alert: Alert) -> str | None:
        spent = alert.money_so_far(timezone.now())
        return None if spent is None else str(spent.quantize(Decimal("0.000001")))


class SignalSerializer(serializers.ModelSerializer[Signal]):
    says = serializers.SerializerMethodField(help_text="In the language asked for.")

    class Meta:
        model = Signal
        fields = ["kind", "detail", "severity", "says", "since", "cleared_at", "values"]

    @extend_schema_field({"type": "string"})
    def get_says(self, signal: Signal) -> str:
        return signal_words(signal)


class AlertEventSerializer(serializers.ModelSerializer[AlertEvent]):
    actor = serializers.CharField(source="actor_label", help_text="Empty: Rackrent itself.")

    class Meta:
        model = AlertEvent
        fields = ["at", "kind", "severity", "actor", "quiet", "values"]


@extend_schema_serializer(examples=[OpenApiExample("alert", WHOLE_ALERT_EXAMPLE)])
class WholeAlertSerializer(AlertSerializer):
    signals = serializers.SerializerMethodField(help_text="Newest first, 200 at most.")
    events = serializers.SerializerMethodField(help_text="Newest first, 200 at most.")

    class Meta(AlertSerializer.Meta):
        fields = list(WHOLE_ALERT_EXAMPLE)

    @extend_schema_field(SignalSerializer(many=True))
    def get_signals(self, alert: Alert) -> Any:
        return SignalSerializer(alert.signals.order_by("-since", "-pk")[:SIGNALS_SHOWN], many=True).data

    @extend_schema_field(AlertEventSerializer(many=True))
    def get_events(self, alert: Alert) -> Any:
        return AlertEventSerializer(alert.events.order_by("-at", "-pk")[:EVENTS_SHOWN], many=True).data


@extend_schema_serializer(examples=[OpenApiExample("acknowledge", {"note": "copying to NVMe"})])
class Acknowledgement(Body[dict[str, Any]]):
    note = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text="As colleagues read it beside the alert."
    )


@extend_schema_serializer(examples=[OpenApiExample("snooze", {"until": "2026-11-30T12:00:00Z"})])
class Snooze(Body[dict[str, Any]]):
    until = serializers.DateTimeField(
        allow_null=True, help_text="When it comes back; it does earlier if it gets worse. Null: only if it gets worse."
    )


@extend_schema_serializer(examples=[OpenApiExample("to somebody", {"person": "bob"})])
class Escalation(Body[dict[str, Any]]):
    person = serializers.CharField(
        max_length=150, required=False, allow_null=True,
        help_text="User name of a member who has a channel of their own. Null: whoever stands behind the first readers.",
    )  # fmt: skip


@extend_schema_serializer(examples=[OpenApiExample("nothing to say", {})])
class NoWords(Body[dict[str, Any]]):
    """Takes nothing."""


class AlertFilter(django_filters.FilterSet):
    state = WordsFilter(choices=STATES, method="filter_state", help_text="States, separated by commas.")
    severity = WordsFilter(choices=Severity.choices, help_text="Severities, separated by commas.")
    cause = django_filters.CharFilter(max_length=60, help_text="A family of trouble, as in `gpu.lost`.")
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    account = IdsFilter(help_text="Ids of provider accounts, separated by commas.")
    since = MomentFilter("opened_at", "gte", help_text="Opened at or after this time.")
    until = MomentFilter("opened_at", "lt", help_text="Opened before this time.")

    def filter_state(self, alerts: QuerySet[Alert], name: str, value: list[str]) -> QuerySet[Alert]:
        is_open, is_snoozed = Q(closed_at=None), Q(snoozed_at__isnull=False)
        by_state = {"open": is_open & ~is_snoozed, "snoozed": is_open & is_snoozed, "closed": ~is_open}
        wanted = nothing = Q(pk__in=[])
        for word in value:
            wanted |= by_state.get(word, nothing)
        return alerts.filter(wanted)


class AlertViewSet(WritableRows[Alert]):
    """What is wrong, and what was. One of them has its signals and its events too; docs/alerts.md says how alerts come and go.

    Nothing opens or closes one by hand: what is listed here was found by rules. A note may be put away (`resolve`).
    """

    http_method_names = ["get", "post", "head"]
    queryset = Alert.objects.select_related("team", "instance", "account", "acknowledged_by", "escalated_to")
    serializer_class = AlertSerializer
    filterset_class = AlertFilter
    orderings = ("-opened_at", "id", "changed_at", "closed_at")
    bodies = {
        "acknowledge": Acknowledgement,
        "snooze": Snooze,
        "wake": NoWords,
        "escalate": Escalation,
        "resolve": NoWords,
    }
    answers = dict.fromkeys(bodies, (200, WholeAlertSerializer))

    def get_serializer_class(self) -> type[AlertSerializer]:
        return AlertSerializer if self.action == "list" else WholeAlertSerializer

    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Says that somebody works on it: reminders stop."""
        alert, note = self.get_object(), self.body(request).get("note", "")
        return self._done(
            alert, acknowledge_alert(actor=self.actor(request), alert=alert, now=timezone.now(), note=note)
        )

    @action(detail=True, methods=["post"])
    def snooze(self, request: Request, pk: str) -> Response:
        """Keeps it quiet until a time, or until it gets worse."""
        alert, until = self.get_object(), self.body(request)["until"]
        with naming_form_fields():
            done = snooze_alert(actor=self.actor(request), alert=alert, now=timezone.now(), until=until)
        return self._done(alert, done)

    @action(detail=True, methods=["post"])
    def wake(self, request: Request, pk: str) -> Response:
        """Ends a snooze."""
        return self._act(request, wake_alert)

    @action(detail=True, methods=["post"])
    def escalate(self, request: Request, pk: str) -> Response:
        """Tells a person on their own channels, or whoever stands behind the first readers."""
        alert, username = self.get_object(), self.body(request).get("person")
        with naming_form_fields():
            person = find_member(team=alert.team, username=username) if username else None
            done = escalate_alert(actor=self.actor(request), alert=alert, now=timezone.now(), person=person)
        return self._done(alert, done)

    @action(detail=True, methods=["post"])
    def resolve(self, request: Request, pk: str) -> Response:
        """Puts a note away until its rule has stopped firing. Warnings close by evidence alone."""
        return self._act(request, resolve_note)

    def _act(self, request: Request, act: Any) -> Response:
        alert = self.get_object()
        self.body(request)
        now: datetime = timezone.now()
        with naming_form_fields():
            return self._done(alert, act(actor=self.actor(request), alert=alert, now=now))

    def _done(self, alert: Alert, done: bool) -> Response:
        """The alert as it is now. What was done already is no error; a closed alert is."""
        fresh = self.get_queryset().get(pk=alert.pk)
        if not done and fresh.closed_at is not None:
            raise ValidationError(_("This alert has closed: there is nothing left to do."))
        return self.answer(fresh)
