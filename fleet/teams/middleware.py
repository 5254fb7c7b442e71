from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import translation
from django_htmx.http import HttpResponseClientRedirect

from fleet.teams.access import membership_in
from fleet.teams.models import Role, User


class SignInMiddleware(LoginRequiredMiddleware):
    """Where a session has ended, the page as a whole goes to sign in, and not the part of it that a script has asked for."""

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponseBase:  # type: ignore[override]  # of another header
        if request.headers.get("HX-Request") != "true":
            return super().handle_no_permission(request, view_func)
        page = urlsplit(request.headers.get("HX-Current-URL", ""))
        back = f"{page.path or '/'}?{page.query}" if page.query else page.path or "/"
        return HttpResponseClientRedirect(redirect_to_login(back, self.get_login_url(view_func)).url)


class LanguageMiddleware:
    """Texts in the language that the signed-in person chose; else LocaleMiddleware's choice stands."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if isinstance(request.user, User) and request.user.language:
            translation.activate(request.user.language)
            request.LANGUAGE_CODE = request.user.language
        return self.get_response(request)


class TeamMiddleware:
    """Turns the `team_slug` of an address into `request.team` and `request.membership`, or into 404.

    A view that names no role with `requires` can be read by every member, and changed with by operators and admins.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.team = request.membership = None  # type: ignore[attr-defined]
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Views never see the slug: what they may touch is `request.team`.
        slug = kwargs.pop("team_slug", None)
        if slug is None or not request.user.is_authenticated:
            return
        membership = membership_in(user=request.user, slug=slug)
        if membership is None:
            raise Http404
        request.membership, request.team = membership, membership.team  # type: ignore[attr-defined]
        reads = request.method in {"GET", "HEAD", "OPTIONS"}
        if not reads and not hasattr(view, "required_role") and not membership.can(Role.OPERATOR):
            raise PermissionDenied(Role.OPERATOR.value)
