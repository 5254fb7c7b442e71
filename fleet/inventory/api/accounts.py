"""Provider accounts over the API, never their credentials, and the images they hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.accounts import create_account, delete_account, pause_account, update_account, verify_account
from fleet.inventory.api.account_bodies import AccountBody, NewAccountBody, PausedBody, arguments_of
from fleet.inventory.api.verdicts import (
    VERDICT_PARAMETERS,
    VERSION_EXAMPLE,
    VerdictSerializer,
    VersionSerializer,
    asked_verdict,
)
from fleet.inventory.environments.sources import environment_of, versions_of
from fleet.inventory.models import Image, ProviderAccount
from fleet.inventory.provider_choices import SELF_MADE
from fleet.providers.registry import adapters
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.scoping import TeamRows
from fleet.teams.writing import WritableRows

ACCOUNT_EXAMPLE = {
    "id": 2,
    "team": "acme",
    "provider": "aws",
    "name": "AWS research",
    "options": {"regions": "us-east-1, eu-central-1"},
    "monitor_only": True,
    "enabled": True,
    "currency": "USD",
    "external_id": "123456789012",
    "poll_interval_seconds": 60,
    "next_poll_at": "2026-11-30T08:01:00Z",
    "listed_at": "2026-11-30T08:00:02Z",
    "failures": 0,
    "failed_at": None,
    "error_kind": "",
    "error_detail": "",
    "doubted_since": None,
    "checked_at": "2026-11-01T09:00:04Z",
    "check_results": [{"name": "accepted", "result": "ok", "as": "123456789012", "milliseconds": 210}],
    "created_at": "2026-11-01T09:00:00Z",
    "disconnected_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("account", ACCOUNT_EXAMPLE)])
class AccountSerializer(serializers.ModelSerializer[ProviderAccount]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    provider = serializers.CharField(source="kind", help_text="Which adapter reads it.")
    options = serializers.SerializerMethodField(
        help_text="What was entered for the account; fields that its adapter declares secret are never answered."
    )

    check_results = serializers.ListField(
        child=serializers.DictField(), help_text="Of the last check of the key: what was tried, and ok, warn or no."
    )

    class Meta:
        model = ProviderAccount
        fields = list(ACCOUNT_EXAMPLE)

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_options(self, account: ProviderAccount) -> dict[str, str]:
        """Only what the adapter declares as not secret: an option nobody declares could be anything."""
        adapter = adapters().get(account.kind)
        shown = [field.name for field in adapter.fields if not field.secret] if adapter else []
        return {name: str(account.options[name]) for name in shown if name in account.options}


class AccountFilter(django_filters.FilterSet):
    provider = django_filters.CharFilter("kind", help_text="e.g. aws.")
    enabled = FlagFilter(help_text="Whether it is polled.")
    disconnected = FlagFilter(
        "disconnected_at", "isnull", exclude=True, help_text="Whether it was disconnected; its machines stay on record."
    )
    failing = FlagFilter(method="filter_failing", help_text="Whether polls failed since the last complete listing.")

    def filter_failing(self, accounts: QuerySet[ProviderAccount], name: str, value: bool) -> QuerySet[ProviderAccount]:
        return accounts.filter(failures__gt=0) if value else accounts.filter(failures=0)


class AccountViewSet(WritableRows[ProviderAccount]):
    """Provider accounts, when each was last listed in full, and what went wrong since. Writes need an admin."""

    queryset = ProviderAccount.objects.select_related("team").defer("credentials")
    serializer_class = AccountSerializer
    filterset_class = AccountFilter
    orderings = ("id", "name", "listed_at")
    write_role = Role.ADMIN
    bodies = {"create": NewAccountBody, "partial_update": AccountBody, "pause": PausedBody}

    def create(self, request: Request) -> Response:
        """Connects an account, and begins a check of its key: `checked_at` and `check_results` tell how it went."""
        asked = self.body(request)
        team = one_team(request, role=Role.ADMIN)
        kind = asked["provider"]
        account = create_account(
            actor=self.actor(request), team=team, kind=kind, **arguments_of(asked, team=team, kind=kind)
        )
        verify_account(actor=self.actor(request), account=account)
        return self.answer(account, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent. An empty secret keeps the one that is there."""
        account = self.connected()
        given = arguments_of(self.body(request), team=account.team, kind=account.kind, account=account)
        saved = update_account(actor=self.actor(request), account=account, **given)
        verify_account(actor=self.actor(request), account=saved)
        return self.answer(self.get_object())

    def destroy(self, request: Request, pk: str) -> Response:
        """Disconnects it: the key is gone for good, its machines run on and leave the fleet, their record stays."""
        delete_account(actor=self.actor(request), account=self.connected())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def verify(self, request: Request, pk: str) -> Response:
        """Begins a check of the key. It answers before the provider does: read the account again."""
        verify_account(actor=self.actor(request), account=self.connected())
        return self.answer(self.get_object())

    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        """Stops or resumes reading it."""
        account, asked = self.connected(), self.body(request)
        pause_account(actor=self.actor(request), account=account, paused=asked["paused"])
        return self.answer(self.get_object())

    def connected(self) -> ProviderAccount:
        """Raises 404 for one that is disconnected, and for those that Rackrent made itself."""
        account = self.get_object()
        if account.disconnected_at or account.kind in SELF_MADE:
            raise NotFound
        return account


IMAGE_EXAMPLE = {
    "id": 4,
    "team": "acme",
    "account": 2,
    "external_id": "ami-0123456789abcdef0",
    "region": "us-east-1",
    "owned": True,
    "name": "train-cuda-13",
    "size_gb": "120.000",
    "created_at": "2026-10-12T11:20:00Z",
    "first_seen_at": "2026-11-01T09:00:00Z",
    "last_seen_at": "2026-11-30T08:00:02Z",
    "gone_at": None,
}


@extend_schema_serializer(examples=[OpenApiExample("image", IMAGE_EXAMPLE)])
class ImageSerializer(serializers.ModelSerializer[Image]):
    team = serializers.CharField(source="account.team.slug", help_text="Its address (slug).")

    class Meta:
        model = Image
        fields = list(IMAGE_EXAMPLE)


WHOLE_IMAGE_EXAMPLE = {**IMAGE_EXAMPLE, "runbook": 6, "versions": [VERSION_EXAMPLE]}


@extend_schema_serializer(examples=[OpenApiExample("image", WHOLE_IMAGE_EXAMPLE)])
class WholeImageSerializer(ImageSerializer):
    runbook = serializers.SerializerMethodField(help_text="Id of what people keep of it; null where they keep nothing.")
    versions = serializers.SerializerMethodField(
        help_text="Every part, with all that was said of it; the first counts."
    )

    class Meta(ImageSerializer.Meta):
        fields = list(WHOLE_IMAGE_EXAMPLE)

    @extend_schema_field({"type": ["integer", "null"]})
    def get_runbook(self, image: Image) -> int | None:
        return environment_of(image).pk

    @extend_schema_field(VersionSerializer(many=True))
    def get_versions(self, image: Image) -> Any:
        return [VersionSerializer(line).data for line in versions_of(environment_of(image)).lines]


class ImageFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    external_id = django_filters.CharFilter(help_text="As the provider names it.")
    owned = FlagFilter(help_text="Whether it is ours; others are seen because a machine uses them.")
    gone = FlagFilter("gone_at", "isnull", exclude=True, help_text="Whether the provider no longer lists it.")
    search = django_filters.CharFilter("name", "icontains", help_text="A part of the name.")
    seen_since = MomentFilter("last_seen_at", "gte", help_text="Listed at or after this time.")


class ImageViewSet(TeamRows[Image]):
    """Disk and container images that machines start from. One of them also has its versions, from all who told them."""

    queryset = Image.objects.select_related("account__team").defer("account__credentials")
    serializer_class = ImageSerializer
    filterset_class = ImageFilter
    team_path = "account__team"
    orderings = ("id", "name", "created_at", "last_seen_at")
    answers: ClassVar[Mapping[str, Any]] = {"verdict": (200, VerdictSerializer)}

    def get_serializer_class(self) -> type[ImageSerializer]:
        return WholeImageSerializer if self.action == "retrieve" else ImageSerializer

    def get_known_parameters(self) -> Collection[str]:
        return {"instance", "gpu", "driver"} if self.action == "verdict" else super().get_known_parameters()

    @extend_schema(parameters=VERDICT_PARAMETERS)
    @action(detail=True, methods=["get"])
    def verdict(self, request: Request, pk: str) -> Response:
        """Whether it runs on a machine, or on a GPU."""
        image = self.get_object()
        versions = versions_of(environment_of(image))
        return Response(VerdictSerializer(asked_verdict(request, versions, team_id=image.account.team_id)).data)
