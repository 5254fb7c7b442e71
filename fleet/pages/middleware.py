from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

COOKIE = "tz"
# Found by looking through the directories of the system's zones.
KNOWN_ZONES = available_timezones()


class TimeZoneMiddleware:
    """Shows times in the zone a person chose, else in the one their browser names in a cookie, else in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        chosen = getattr(request.user, "time_zone", "") or request.COOKIES.get(COOKIE, "")
        with timezone.override(ZoneInfo(chosen) if chosen in KNOWN_ZONES else None):
            return self.get_response(request)
