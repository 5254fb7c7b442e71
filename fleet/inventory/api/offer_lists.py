"""Lists of offers and ratings of support over the API: what a team brings, replaced whole by name."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.offers.lists import import_list, remove_list
from fleet.inventory.offers.models import OfferSource, ProviderScore, ScoreKind, SourceKind
from fleet.inventory.offers.ratings import drop_rating, rate_support
from fleet.inventory.offers.rows import is_currency
from fleet.inventory.offers.sheet import About, Fault, Sheet, read_sheet
from fleet.rest.bodies import Body
from fleet.rest.filters import FlagFilter, WordsFilter
from fleet.teams.fields import one_line
from fleet.teams.models import Role
from fleet.teams.pasted import MAX_BYTES
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

SOURCE_EXAMPLE = {
    "id": 3,
    "team": "acme",
    "kind": "import",
    "name": "Lambda, November",
    "account": None,
    "read_at": "2026-11-30T08:00:05Z",
    "failures": 0,
    "failed_at": None,
    "error_kind": "",
    "error_detail": "",
    "created_at": "2026-11-29T18:02:00Z",
}
COLUMNS = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot"
LIST_EXAMPLE = {
    "name": "Lambda, November",
    "provider": "lambda",
    "priced_on": "2026-11-01",
    "csv": f"{COLUMNS}\ngpu_8x_h100_sxm5,us-east-1,23.92,208,1800,8,H100,80,False\n",
}
PREVIEW_EXAMPLE = {"layout": "gpuhunt", "offers": 1, "without_gpu": 0}
SCORE_EXAMPLE = {
    "id": 5,
    "team": "acme",
    "provider": "lambda",
    "kind": "support",
    "value": 4,
    "note": "answers within the hour",
    "by": "bob",
    "at": "2026-11-29T18:02:00Z",
}


@extend_schema_serializer(examples=[OpenApiExample("list", SOURCE_EXAMPLE)])
class OfferSourceSerializer(serializers.ModelSerializer[OfferSource]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    read_at = serializers.DateTimeField(allow_null=True, help_text="When it was last read or imported whole.")

    class Meta:
        model = OfferSource
        fields = list(SOURCE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("list", LIST_EXAMPLE)])
class NewList(Body[dict[str, Any]]):
    name = serializers.CharField(max_length=80, help_text="A list of the same name is replaced.")
    provider = serializers.CharField(
        max_length=60, required=False, default="", allow_blank=True, help_text="For lists without a column for it."
    )
    currency = serializers.CharField(
        max_length=3, required=False, default="USD", help_text="ISO 4217; USD unless told."
    )
    priced_on = serializers.DateField(help_text="The day on which the list was made.")
    csv = serializers.CharField(
        max_length=MAX_BYTES, trim_whitespace=False, help_text="In the columns of gpuhunt or SkyPilot, up to 2 MB."
    )

    def validate_currency(self, word: str) -> str:
        if not is_currency(word.upper()):
            raise ValidationError(_("Write three letters, as USD."))
        return word.upper()

    def validate_priced_on(self, day: Any) -> Any:
        if day > timezone.localdate():
            raise ValidationError(_("This day is still to come. Give the day on which the list was made."))
        return day


@extend_schema_serializer(examples=[OpenApiExample("preview", PREVIEW_EXAMPLE)])
class ListPreview(serializers.Serializer[Any]):
    layout = serializers.ChoiceField(choices=["gpuhunt", "skypilot"])
    offers = serializers.IntegerField(help_text="How many an import would keep.")
    without_gpu = serializers.IntegerField(help_text="Rows without a GPU, which are left out.")


class OfferSourceFilter(django_filters.FilterSet):
    kind = WordsFilter(choices=SourceKind.choices, help_text="live, table or import, separated by commas.")
    failing = FlagFilter("failures", "gt", method="filter_failing", help_text="Whether the last reading failed.")

    def filter_failing(self, sources: Any, name: str, value: bool) -> Any:
        return sources.filter(failures__gt=0) if value else sources.filter(failures=0)


class OfferSourceViewSet(WritableRows[OfferSource]):
    """Where offers come from: accounts with live offers, the price table, and lists that the team imported."""

    http_method_names = ["get", "post", "delete", "head"]
    queryset = OfferSource.objects.select_related("team")
    serializer_class = OfferSourceSerializer
    filterset_class = OfferSourceFilter
    orderings = ("id", "name", "read_at")
    bodies = {"create": NewList, "preview": NewList}
    answers = {"preview": (200, ListPreview)}

    def create(self, request: Request) -> Response:
        """Imports a list in place of the one of the same name: whole, or not at all. The first wrong cell is told by line and column."""
        asked = self.body(request)
        team = one_team(request, role=Role.OPERATOR)
        sheet = read(asked)
        source = import_list(
            actor=self.actor(request), team=team, name=one_line(asked["name"]), rows=sheet.rows, now=timezone.now()
        )
        return self.answer(source, status.HTTP_201_CREATED)

    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """Reads a list as an import would, and keeps nothing."""
        sheet = read(self.body(request))
        return Response({"layout": sheet.layout, "offers": len(sheet.rows), "without_gpu": sheet.without_gpu})

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes an imported list with its offers."""
        source = self.get_object()
        if source.kind != SourceKind.IMPORT:
            raise ValidationError(
                {"kind": _("Only imported lists can be removed; the others come back by themselves.")}
            )
        remove_list(actor=self.actor(request), source=source)
        return Response(status=status.HTTP_204_NO_CONTENT)


def read(asked: dict[str, Any]) -> Sheet:
    """Raises ValidationError for the first fault, with how many there are."""
    name, provider = one_line(asked["name"]), one_line(asked["provider"])
    sheet = read_sheet(asked["csv"], About(provider, asked["currency"], asked["priced_on"], name))
    if sheet.faults:
        raise ValidationError({"csv": fault_text(sheet.faults[0], len(sheet.faults))})
    return sheet


def fault_text(fault: Fault, count: int) -> str:
    told = {"line": fault.line, "column": fault.column, "text": fault.text, "more": count - 1}
    first = fault.text
    if fault.line:
        words = _("Line %(line)d, %(column)s: %(text)s") if fault.column else _("Line %(line)d: %(text)s")
        first = words % told
    more = _("%(more)d more to correct.") % told
    return first if count == 1 else f"{first} {more}"


@extend_schema_serializer(examples=[OpenApiExample("rating", SCORE_EXAMPLE)])
class ProviderScoreSerializer(serializers.ModelSerializer[ProviderScore]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    value = serializers.IntegerField(min_value=1, max_value=5, help_text="1 (bad) to 5 (good).")
    by = serializers.CharField(source="by.username", default=None, allow_null=True, help_text="A user name.")

    class Meta:
        model = ProviderScore
        fields = list(SCORE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("rating", {"provider": "lambda", "stars": 4, "note": ""})])
class NewRating(Body[dict[str, Any]]):
    provider = serializers.CharField(max_length=60, help_text="As offers name it.")
    stars = serializers.IntegerField(min_value=1, max_value=5, help_text="5: quick and able; 1: nobody answers.")
    note = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)


class ProviderScoreViewSet(WritableRows[ProviderScore]):
    """What the ranking of offers knows of providers beyond their prices. Support is rated by the team."""

    http_method_names = ["get", "post", "delete", "head"]
    queryset = ProviderScore.objects.select_related("team", "by")
    serializer_class = ProviderScoreSerializer
    orderings = ("id", "provider", "at")
    bodies = {"create": NewRating}

    def create(self, request: Request) -> Response:
        """Rates a provider's support, in place of the team's former rating."""
        asked = self.body(request)
        team = one_team(request, role=Role.OPERATOR)
        provider, note = one_line(asked["provider"]).lower(), one_line(asked["note"])
        score = rate_support(
            actor=self.actor(request), team=team, provider=provider, stars=asked["stars"], note=note, now=timezone.now()
        )
        return self.answer(score, status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Drops a rating: support has no weight there any more."""
        score = self.get_object()
        if score.kind != ScoreKind.SUPPORT:
            raise ValidationError({"kind": _("Only ratings of support can be dropped.")})
        drop_rating(actor=self.actor(request), score=score)
        return Response(status=status.HTTP_204_NO_CONTENT)
