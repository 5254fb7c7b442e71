"""The fleet as a page for Prometheus (docs/metrics.md)."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView
from fleet.telemetry.giving.families import families_of
from fleet.telemetry.giving.more import added
from fleet.telemetry.giving.read import read_fleet
from fleet.telemetry.giving.text import CONTENT_TYPE, pieces

# zlib's number for a gzip header around the stream.
_GZIP = 31


class AnyAccept(BaseContentNegotiation):
    """The page is text whatever is asked for, its errors are JSON: scrapers name formats that this version of ours may not know."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class FleetMetricsView(ApiView):
    """The machines of your team as Prometheus reads them: GPUs under DCGM's names, hosts, prices, cost and states.

    Readings that are too old to be shown as present are absent, as are those that were never made.
    """

    # The schema describes JSON; this is a page of another kind, described in docs/metrics.md.
    schema = None
    content_negotiation_class = AnyAccept
    known_parameters = ("team",)

    def get(self, request: Request) -> StreamingHttpResponse:
        now = timezone.now()
        team_ids = Access.of_request(request).team_ids(slug=request.query_params.get("team"))
        page = pieces(chain(families_of(read_fleet(team_ids, now=now), now=now), added(team_ids, now=now)))
        packs = "gzip" in request.headers.get("Accept-Encoding", "")
        body = gzipped(page) if packs else page
        answer = StreamingHttpResponse(for_server(request._request, body), content_type=CONTENT_TYPE)  # noqa: SLF001 - Django's own request; DRF has no public word for it
        answer.headers["Vary"] = "Accept-Encoding, Authorization"
        if packs:
            answer.headers["Content-Encoding"] = "gzip"
        return answer


def gzipped(page: Iterator[bytes]) -> Iterator[bytes]:
    """A twentieth of the size at the lowest level; labels repeat."""
    packer = zlib.compressobj(level=1, wbits=_GZIP)
    for piece in page:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def for_server(request: HttpRequest, page: Iterator[bytes]) -> Iterator[bytes] | AsyncIterator[bytes]:
    """Under ASGI, pieces are made in a thread, one at a time: ingest goes on between them."""
    return _in_thread(page) if isinstance(request, ASGIRequest) else page


async def _in_thread(page: Iterator[bytes]) -> AsyncIterator[bytes]:
    take = sync_to_async(lambda: next(page, None), thread_sensitive=False)
    while (piece := await take()) is not None:
        yield piece
