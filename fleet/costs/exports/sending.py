"""An export as an answer, sent while it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from fleet.costs.exports.export import Export


def file_answer(request: HttpRequest, export: Export) -> StreamingHttpResponse:
    is_async = isinstance(request, ASGIRequest)
    disposition = content_disposition_header(as_attachment=True, filename=export.name)
    return StreamingHttpResponse(
        in_request_thread(export.pieces) if is_async else export.pieces,
        content_type=export.media_type,
        headers={"Content-Disposition": disposition or "attachment", "Cache-Control": "no-store"},
    )


async def in_request_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Days are read while the answer goes out: in the thread whose connection to the database the end of the request closes."""
    take = sync_to_async(lambda: next(pieces, None), thread_sensitive=True)
    while (piece := await take()) is not None:
        yield piece
