"""How many requests Django works on at once: each holds a database connection, and there are only so many."""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import translation
from django.utils.translation import gettext as _

from fleet.meters import meters

WAIT_SECONDS = 5.0
RETRY_AFTER_SECONDS = 5


class CrowdedHandler(ASGIHandler):
    """Lets REQUESTS_AT_ONCE in; others wait on the event loop, which costs next to nothing, and after a while are asked to come again.

    A request comes here when its body has been read, so that a slow sender takes nobody's place.
    """

    def __init__(self) -> None:
        super().__init__()
        self._places = asyncio.Semaphore(settings.REQUESTS_AT_ONCE)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            meters.count("requests_turned_away")
            return _come_again(request)
        try:
            response: HttpResponseBase = await super().get_response_async(request)
        finally:
            self._places.release()
        return response


def _come_again(request: HttpRequest) -> HttpResponse:
    with translation.override(translation.get_language_from_request(request)):
        text = _("Too many requests wait here. Try again in a few seconds.")
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS), "X-Content-Type-Options": "nosniff"}
    return HttpResponse(text, status=503, content_type="text/plain; charset=utf-8", headers=headers)
