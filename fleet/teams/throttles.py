"""How often one caller may ask. Who calls is a token, a signed-in person, or an address."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from fleet.teams.addresses import client_ip

if TYPE_CHECKING:
    from rest_framework.views import APIView

log = logging.getLogger(__name__)


class OpenWithoutCache(SimpleRateThrottle):
    """Lets everybody through, uncounted, while the cache is away: a throttle must not be what ends the service."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        try:
            return super().allow_request(request, view)
        except (RedisError, OSError) as error:
            log.warning("Nothing is throttled, because the cache does not answer: %s", error)
            return True


class CallerThrottle(OpenWithoutCache):
    """Counts the callers of one kind, which is also the name of their rate in the settings."""

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        kind, ident = self.caller(request)
        return self.cache_format % {"scope": self.scope, "ident": ident} if kind == self.scope else None

    def caller(self, request: Request) -> tuple[str, Any]:
        if request.auth is not None:
            return "token", request.auth.pk
        if request.user.is_authenticated:
            return "user", request.user.pk
        return "anonymous", client_ip(request)


class TokenThrottle(CallerThrottle):
    scope = "token"


class UserThrottle(CallerThrottle):
    scope = "user"


class AnonymousThrottle(CallerThrottle):
    scope = "anonymous"


class SeriesThrottle(CallerThrottle):
    """A rate of their own for answers that scan samples."""

    scope = "series"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        kind, ident = self.caller(request)
        return self.cache_format % {"scope": self.scope, "ident": f"{kind}-{ident}"}


class WriteThrottle(SeriesThrottle):
    """A rate of their own for requests that change something."""

    scope = "write"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return None if request.method in SAFE_METHODS else super().get_cache_key(request, view)
