"""Who calls the API: an API token, or the session of a signed-in person (whose writes need the CSRF token)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fleet.teams.models import APIToken
from fleet.teams.secrets import hash_token

# A script that asks every second must not write a row every second.
USED_AGAIN_AFTER = timedelta(minutes=1)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer rrk_…`. The caller is the token, not the person who made it: `request.user` stays anonymous."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, APIToken] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed(_("Send one token: `Authorization: Bearer rrk_…`."), "token_unknown")
        token = valid_token(words[1].decode("ascii", "replace"), now=timezone.now())
        return AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="Rackrent"'


def valid_token(secret: str, *, now: datetime) -> APIToken:
    """The token with this secret. Raises AuthenticationFailed, with the reason: who holds the secret may know it."""
    token = APIToken.objects.select_related("team").filter(token_hash=hash_token(secret)).first()
    if token is None:
        raise AuthenticationFailed(_("This API token does not exist. Make one under Settings."), "token_unknown")
    if token.revoked_at is not None:
        raise AuthenticationFailed(_("This API token was revoked. Make a new one under Settings."), "token_revoked")
    if token.expires_at is not None and token.expires_at <= now:
        raise AuthenticationFailed(_("This API token has expired. Make a new one under Settings."), "token_expired")
    _note_use(token, now)
    return token


def _note_use(token: APIToken, now: datetime) -> None:
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USED_AGAIN_AFTER)
    if token.last_used_at is None or token.last_used_at < now - USED_AGAIN_AFTER:
        APIToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, made under Settings → API tokens. It belongs to one team.",
        }
