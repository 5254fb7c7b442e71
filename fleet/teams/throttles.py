"""How often one caller may ask. Who calls is a token, a signed-in person, or an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from fleet.teams.addresses import client_ip

if TYPE_CHECKING:
    from rest_framework.views import APIView


class CallerThrottle(SimpleRateThrottle):
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
