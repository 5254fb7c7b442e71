"""A month of money as a file, over the API."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from fleet.costs.exports.export import FORMATS, ExportError, Wish, open_export
from fleet.costs.exports.focus_columns import DEFAULT_VERSION, VERSIONS
from fleet.costs.exports.sending import file_answer
from fleet.downloads import MEDIA_TYPES
from fleet.teams.models import Team
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle

_WORD = {"type": "string"}
PARAMETERS = [
    OpenApiParameter("month", {**_WORD, "pattern": "^[0-9]{4}-[0-9]{2}$"}, description="Unless told, the present one."),
    OpenApiParameter("format", {**_WORD, "enum": list(FORMATS), "default": "csv"}, description="What to write."),
    OpenApiParameter(
        "version", {**_WORD, "enum": list(VERSIONS), "default": DEFAULT_VERSION}, description="Which FOCUS to write."
    ),
    OpenApiParameter(
        "bom", {**_WORD, "enum": ["0", "1"]}, description="1: a byte order mark before a CSV file, for Excel."
    ),
    OpenApiParameter("team", description="Address (slug) of one of your teams; a person in several must say which."),
]


class _AnyAccept(BaseContentNegotiation):
    """The answer is the file that `format` names, and errors are JSON, whatever the caller accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class CostsExportView(ApiView):
    """A month of a team's money as a file: plain CSV or Parquet, or FOCUS (see docs/exports.md)."""

    content_negotiation_class = _AnyAccept
    known_parameters = ("month", "format", "version", "bom", "team")
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)

    @extend_schema(
        parameters=PARAMETERS,
        responses={
            (200, MEDIA_TYPES["csv"]): OpenApiTypes.STR,
            (200, MEDIA_TYPES["parquet"]): OpenApiTypes.BINARY,
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        team = one_team(request)
        try:
            wish = Wish.of(request.query_params.dict(), team=team, now=timezone.now())
        except ExportError as error:
            raise ValidationError({error.field: str(error)}) from None
        return file_answer(request._request, open_export(team, wish))  # noqa: SLF001


def one_team(request: Request) -> Team:
    """Amounts of two teams belong into two files."""
    access = Access.of_request(request)
    ids = access.team_ids(slug=request.query_params.get("team"))
    found = [team for team in access.teams if team.pk in ids]
    if len(found) != 1:
        raise ValidationError({"team": _("Say of which of your teams: give its address.")})
    return found[0]
