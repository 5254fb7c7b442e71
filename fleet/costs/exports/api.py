"""A month of money as a file, over the API."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from fleet.costs.exports.export import ExportError, Wish, open_export
from fleet.costs.exports.sending import file_answer
from fleet.teams.permissions import one_team
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle


class _AnyAccept(BaseContentNegotiation):
    """The answer is the file that `format` names, and errors are JSON, whatever the caller accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class CostsExportView(ApiView):
    """A month of a team's money as a file: plain CSV or Parquet, or FOCUS (see docs/exports.md)."""

    # The schema describes JSON; these are files, described in docs/exports.md.
    schema = None
    content_negotiation_class = _AnyAccept
    known_parameters = ("month", "format", "version", "bom", "team")
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)

    def get(self, request: Request) -> StreamingHttpResponse:
        team = one_team(request)
        try:
            wish = Wish.of(request.query_params.dict(), team=team, now=timezone.now())
        except ExportError as error:
            raise ValidationError({error.field: str(error)}) from None
        return file_answer(request._request, open_export(team, wish))  # noqa: SLF001 - Django's own request; DRF has no public word for it
