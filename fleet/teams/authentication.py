"""Who calls the API: an API token, or the session of a signed-in person (whose writes need the CSRF token)."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fleet.teams.models import APIToken
from fleet.teams.secrets import hash_token
from fleet.teams.tokens import find_token


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer rrk_…`. The caller is the token, not the person who made it: `request.user` stays anonymous."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, APIToken] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed(_("Send one token: `Authorization: Bearer rrk_…`."), "token_unknown")
        secret = words[1].decode("ascii", "replace")
        token = find_token(secret=secret, now=timezone.now())
        if token is None:
            raise refusal_of(secret)
        return AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="Rackrent"'


def refusal_of(secret: str) -> AuthenticationFailed:
    """Why it opens nothing. Who holds the secret of a dead token may know that it lived."""
    token = APIToken.objects.filter(token_hash=hash_token(secret)).first()
    if token is None:
        return AuthenticationFailed(_("This API token does not exist. Make one under Settings."), "token_unknown")
    if token.revoked_at is not None:
        return AuthenticationFailed(_("This API token was revoked. Make a new one under Settings."), "token_revoked")
    return AuthenticationFailed(_("This API token has expired. Make a new one under Settings."), "token_expired")


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # the library has no types
    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, made under Settings → API tokens. It belongs to one team.",
        }
