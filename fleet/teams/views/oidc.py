"""The two addresses of sign-in with an OpenID provider; without one they do not exist."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@login_not_required
@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    from fleet.teams.oidc import StartView, guarded

    return guarded(request, StartView)


@login_not_required
@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    from fleet.teams.oidc import CallbackView, guarded

    return guarded(request, CallbackView)
