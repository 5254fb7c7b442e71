"""Exporters that are read for machines, over the API: the same use-cases as the pages. A token goes in and never comes out."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.models import Instance
from fleet.inventory.remote import SshAddress, fingerprint
from fleet.rest.bodies import Body, naming_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter, WordsFilter
from fleet.teams.writing import WritableRows
from fleet.telemetry.models import ScrapeKind, ScrapeTarget
from fleet.telemetry.scrape.targets import (
    INTERVAL_CHOICES_SECONDS,
    TargetError,
    add_target,
    confirm_target_host,
    read_target_now,
    remove_target,
    update_target,
)
from fleet.telemetry.scrape.words import failure_text
from fleet.telemetry.tasks import scrape_shard

# As the schema is told of them; the same field of another list has other ones.
INTERVALS = [(seconds, seconds) for seconds in INTERVAL_CHOICES_SECONDS]
TARGET_EXAMPLE = {
    "id": 9,
    "team": "acme",
    "instance": 17,
    "url": "http://203.0.114.7:9400/metrics",
    "ssh": "",
    "ssh_host_key": "",
    "ssh_offered_key": "",
    "kind": "dcgm",
    "interval_seconds": 30,
    "enabled": True,
    "has_token": True,
    "created_at": "2026-11-29T18:02:00Z",
    "last_ok_at": "2026-11-30T08:00:05Z",
    "failed_at": None,
    "failures": 0,
    "error": "",
    "failure": "",
    "gives_gpus": True,
    "gives_host": False,
    "yields_to": "",
}


@extend_schema_serializer(examples=[OpenApiExample("exporter", TARGET_EXAMPLE)])
class ScrapeTargetSerializer(serializers.ModelSerializer[ScrapeTarget]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    has_token = serializers.SerializerMethodField(help_text="Whether a bearer token is kept; it is never answered.")
    error = serializers.CharField(help_text="A code; empty while it is read.")
    failure = serializers.SerializerMethodField(help_text="The error in words, in the language asked for.")
    yields_to = serializers.CharField(help_text="What feeds the machine in its place: agent, exporter, or empty.")

    ssh = serializers.CharField(help_text="user@host:port through which it is reached; empty: directly.")
    ssh_host_key = serializers.SerializerMethodField(help_text="Fingerprint of the confirmed host key; empty: none.")
    ssh_offered_key = serializers.SerializerMethodField(help_text="Fingerprint of a host key that waits for it.")

    class Meta:
        model = ScrapeTarget
        fields = list(TARGET_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_ssh_host_key(self, target: ScrapeTarget) -> str:
        return self._host_keys(target)[0]

    @extend_schema_field({"type": "string"})
    def get_ssh_offered_key(self, target: ScrapeTarget) -> str:
        return self._host_keys(target)[1]

    def _host_keys(self, target: ScrapeTarget) -> tuple[str, str]:
        """Out of the machine's prefetched hosts: a list costs the same queries however long it is."""
        if not target.ssh:
            return "", ""
        address = SshAddress.parse(target.ssh)
        for host in target.instance.ssh_hosts.all():
            if (host.host, host.port) == (address.host, address.port):
                return fingerprint(host.pinned), fingerprint(host.offered)
        return "", ""

    @extend_schema_field({"type": "boolean"})
    def get_has_token(self, target: ScrapeTarget) -> bool:
        return bool(target.token)

    @extend_schema_field({"type": "string"})
    def get_failure(self, target: ScrapeTarget) -> str:
        return failure_text(target)


class TargetFields(Body[dict[str, Any]]):
    url = serializers.CharField(max_length=500, help_text="As the workers of this installation reach it.")
    ssh = serializers.CharField(
        max_length=330,
        required=False,
        allow_blank=True,
        help_text="user@host:port, for an exporter on the machine's own loopback; empty: directly.",
    )
    kind = serializers.ChoiceField(choices=ScrapeKind.choices, required=False, help_text="Which exporter it is.")
    interval_seconds = serializers.ChoiceField(
        choices=INTERVALS, required=False, help_text="How often it is read; 30 unless told."
    )
    token = serializers.CharField(
        max_length=500,
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        write_only=True,
        help_text="A bearer token that the exporter asks for; kept encrypted. Empty for none.",
    )


@extend_schema_serializer(
    examples=[OpenApiExample("exporter", {"instance": 17, "url": "http://203.0.114.7:9400/metrics", "token": "…"})]
)
class NewScrapeTarget(TargetFields):
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, help_text="The id of its machine."
    )


@extend_schema_serializer(examples=[OpenApiExample("less often", {"interval_seconds": 60})])
class ScrapeTargetChanges(TargetFields):
    """Only what is to change. A token that is kept does not follow to another address: send it with the new `url`."""

    url = serializers.CharField(max_length=500, required=False, help_text="As the workers reach it.")
    enabled = serializers.BooleanField(required=False, help_text="Whether it is read.")


@extend_schema_serializer(
    examples=[OpenApiExample("host key", {"fingerprint": "SHA256:EAxlGZ6Xc262BGkqdpx+lCareqkg4Ogygfl28oqF2Lo"})]
)
class HostKeyConfirmation(Body[dict[str, Any]]):
    fingerprint = serializers.CharField(max_length=100, help_text="Of the offered key, as `ssh_offered_key` says it.")


@extend_schema_serializer(examples=[OpenApiExample("started", {"started": True}, status_codes=["202"])])
class ReadingStarted(serializers.Serializer[dict[str, bool]]):
    started = serializers.BooleanField(help_text="False: it is being read, was read just now, or is not enabled.")


class ScrapeTargetFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    kind = WordsFilter(choices=ScrapeKind.choices, help_text="Kinds, separated by commas.")
    enabled = FlagFilter(help_text="Whether it is read.")
    failing = FlagFilter(method="filter_failing", help_text="Whether the last reading failed.")

    def filter_failing(self, targets: QuerySet[ScrapeTarget], name: str, value: bool) -> QuerySet[ScrapeTarget]:
        return targets.exclude(error="") if value else targets.filter(error="")


class ScrapeTargetViewSet(WritableRows[ScrapeTarget]):
    """Exporters that are read for machines, and how each fares. docs/scraping.md says which exporters are known."""

    queryset = (
        ScrapeTarget.objects.select_related("instance__team").prefetch_related("instance__ssh_hosts").defer("memory")
    )
    serializer_class = ScrapeTargetSerializer
    filterset_class = ScrapeTargetFilter
    team_path = "instance__team"
    orderings = ("id", "created_at", "last_ok_at")
    bodies = {"create": NewScrapeTarget, "partial_update": ScrapeTargetChanges, "confirm_host_key": HostKeyConfirmation}
    answers = {"read": (status.HTTP_202_ACCEPTED, ReadingStarted)}

    def create(self, request: Request) -> Response:
        """Adds an exporter. It is read within seconds; the row says how that went."""
        asked = self.body(request)
        machines = Instance.objects.select_related("team")
        machine = self.named(machines, field="instance", pk=asked.pop("instance"))
        with naming_fields(TargetError):
            target = add_target(actor=self.actor(request), instance=machine, **asked)
        return self.answer(target, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest. A reading that is under way is thrown away."""
        target, asked = self.get_object(), self.body(request)
        with naming_fields(TargetError):
            target = update_target(actor=self.actor(request), target=target, **asked)
        return self.answer(target)

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes an exporter. What it gave stays."""
        remove_target(actor=self.actor(request), target=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @action(detail=True, methods=["post"])
    def read(self, request: Request, pk: str) -> Response:
        """Reads an exporter now, out of turn. It answers before the exporter does: the row has the result seconds later."""
        claim = read_target_now(actor=self.actor(request), target=self.get_object())
        if claim:
            transaction.on_commit(partial(scrape_shard.delay, str(claim)))
        return Response({"started": claim is not None}, status=status.HTTP_202_ACCEPTED)

    @action(detail=True, methods=["post"], url_path="confirm-host-key")
    def confirm_host_key(self, request: Request, pk: str) -> Response:
        """Pins the host key of the SSH server that an exporter is reached through, after you have compared its fingerprint."""
        target, asked = self.get_object(), self.body(request)
        if not confirm_target_host(actor=self.actor(request), target=target, shown=asked["fingerprint"]):
            raise ValidationError({"fingerprint": _("The machine offers no such key now: read `ssh_offered_key`.")})
        return self.answer(self.get_object())
