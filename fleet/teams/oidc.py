"""Sign-in with an OpenID provider, on mozilla-django-oidc: code flow with PKCE, state and nonce.

What the library leaves open is closed here: addresses come from the provider's discovery document, issuer, audience and
expiry of the identity token are checked, and people are matched by subject before e-mail.
"""

from __future__ import annotations

import logging
from typing import Any

import httpx
import jwt
import requests
from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from fleet.teams.addresses import client_ip
from fleet.teams.audit import Actor
from fleet.teams.errors import TeamsError
from fleet.teams.identities import Vouched, find_person, follow_groups, parse_rules, vouched_by
from fleet.teams.models import User

log = logging.getLogger(__name__)

DISCOVERY_SECONDS = 3600
# The library's name for an address -> its name in the discovery document (OpenID Connect Discovery 1.0, 3).
ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
# What a provider that is away or talks nonsense makes the library raise.
PROVIDER_ERRORS = (
    SuspiciousOperation,
    httpx.HTTPError,
    requests.RequestException,
    jwt.PyJWTError,
    ValueError,
    KeyError,
)


def discover() -> dict[str, Any]:
    """The provider's own description, kept for an hour. Raises httpx.HTTPError, SuspiciousOperation."""
    key = f"oidc.discovery.{settings.OIDC_ISSUER}"
    found: dict[str, Any] | None = cache.get(key)
    if found is None:
        address = settings.OIDC_ISSUER.rstrip("/") + "/.well-known/openid-configuration"
        found = httpx.get(address, timeout=settings.OIDC_TIMEOUT).raise_for_status().json()
        # Must be the same to the letter, or another provider's document could be slipped in (Discovery 1.0, 4.3).
        if found.get("issuer") != settings.OIDC_ISSUER:
            raise SuspiciousOperation(
                f"The provider calls itself {found.get('issuer')!r}, not {settings.OIDC_ISSUER!r}"
            )
        cache.set(key, found, DISCOVERY_SECONDS)
    return found


def oidc_setting(name: str, *default: Any) -> Any:
    return discover()[ENDPOINTS[name]] if name in ENDPOINTS else import_from_settings(name, *default)


class OpenIDBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # the library is not typed
    """Reads the provider's addresses only when they are needed: Django makes a backend at every password sign-in, too."""

    get_settings = staticmethod(oidc_setting)

    def __init__(self) -> None:
        self.UserModel = User
        self.OIDC_RP_CLIENT_ID = settings.OIDC_RP_CLIENT_ID
        self.OIDC_RP_CLIENT_SECRET = settings.OIDC_RP_CLIENT_SECRET
        self.OIDC_RP_SIGN_ALGO = settings.OIDC_RP_SIGN_ALGO
        # Keys come from the provider's published set, where it can change them without us.
        self.OIDC_RP_IDP_SIGN_KEY = None

    def __getattr__(self, name: str) -> Any:
        if name in ENDPOINTS:
            return oidc_setting(name)
        raise AttributeError(name)

    def authenticate(self, request: HttpRequest | None, *, nonce: str, code_verifier: str | None = None) -> User | None:
        """Takes no user name, so that Django does not ask it about passwords."""
        user: User | None = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        return user

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Also who issued it and for whom (OpenID Connect Core 1.0, 3.1.3.7)."""
        claims: dict[str, Any] = super().verify_token(token, **kwargs)
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != settings.OIDC_ISSUER:
            raise SuspiciousOperation("The identity token comes from another issuer")
        if (
            self.OIDC_RP_CLIENT_ID not in audiences
            or claims.get("azp", self.OIDC_RP_CLIENT_ID) != self.OIDC_RP_CLIENT_ID
        ):
            raise SuspiciousOperation("The identity token is for another client")
        if "exp" not in claims:
            raise SuspiciousOperation("The identity token never expires")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        """Raises TeamsError where the person has no account, or a team would lose its last admin."""
        claims = self.get_userinfo(access_token, id_token, payload)
        # The access token is not bound to the identity token; a mixed-up pair must not sign in the wrong person (5.3.2).
        if claims.get("sub") != payload["sub"]:
            raise SuspiciousOperation("The provider answers about somebody else")
        vouched = vouched_by(
            issuer=settings.OIDC_ISSUER, claims={**payload, **claims}, group_claim=settings.OIDC_TEAM_CLAIM
        )
        address = client_ip(self.request)
        user = find_person(vouched=vouched, may_create=settings.OIDC_CREATE_USER, ip_address=address)
        follow(user, vouched, address)
        return user


def follow(user: User, vouched: Vouched, ip_address: str | None) -> None:
    rules = parse_rules(settings.OIDC_TEAM_ROLES)
    if vouched.groups is not None and rules:
        actor = Actor(user, f"{user.username} ({vouched.issuer})"[:200], "page", ip_address)
        follow_groups(actor=actor, user=user, groups=vouched.groups, rules=rules)


class StartView(OIDCAuthenticationRequestView):  # type: ignore[misc]
    get_settings = staticmethod(oidc_setting)


class CallbackView(OIDCAuthenticationCallbackView):  # type: ignore[misc]
    get_settings = staticmethod(oidc_setting)

    def login_failure(self) -> HttpResponse:
        return sign_in_failed(self.request, _("The sign-in was refused or took too long. Try again."))


def guarded(request: HttpRequest, view: type[StartView | CallbackView]) -> HttpResponse:
    """What went wrong is said on the sign-in page; the log of the web process says more."""
    try:
        response: HttpResponse = view.as_view()(request)
    except TeamsError as error:
        return sign_in_failed(request, str(error))
    except PROVIDER_ERRORS as error:
        log.warning("Sign-in through %s failed: %s: %s", settings.OIDC_ISSUER, type(error).__name__, error)
        return sign_in_failed(
            request, _("The sign-in provider did not answer as it should. Try again, or use a password.")
        )
    return response


def sign_in_failed(request: HttpRequest, message: str) -> HttpResponse:
    messages.error(request, message)
    return redirect("login")
