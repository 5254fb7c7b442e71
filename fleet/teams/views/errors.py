"""Pages for what went wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone

from fleet.teams.models import Role


def forbidden(request: HttpRequest, exception: PermissionDenied) -> HttpResponse:
    """`requires` raises with the role that is missing."""
    word = str(exception)
    needed = Role(word).label if word in Role else ""
    return render(request, "403.html", {"needed": needed}, status=403)


def bad_request(_request: HttpRequest, exception: Exception) -> HttpResponse:
    """Drawn without the request: its address may be what is refused."""
    too_large = isinstance(exception, RequestDataTooBig)
    most = (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) / (1 << 20)
    page = render_to_string("400.html", {"too_large": too_large, "most_mib": most})
    return HttpResponse(page, status=413 if too_large else 400)


def locked_out(request: HttpRequest, *_args: Any) -> HttpResponse:
    """Too many wrong passwords for this name from this address; says when the lock ends."""
    # django-axes hands the credentials over only in its synchronous half; the request carries them in both.
    credentials = getattr(request, "axes_credentials", None)
    attempts = AxesProxyHandler.get_implementation().get_user_attempts(request, credentials)
    last = max((found for query in attempts if (found := query.aggregate(at=Max("attempt_time"))["at"])), default=None)
    until = (last or timezone.now()) + (get_cool_off(request) or timedelta())
    seconds = max(1, round((until - timezone.now()).total_seconds()))
    # Shown to the minute, and never as earlier than it is.
    shown = until + timedelta(seconds=-until.timestamp() % 60)
    response = render(request, "lockout.html", {"until": shown}, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response
