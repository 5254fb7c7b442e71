"""Refuses settings of sign-in that could not work or would not be safe; ids go on where config/checks.py ends."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error

from fleet.teams.identities import parse_rules

LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def check_openid(**_: object) -> Iterator[CheckMessage]:
    if not settings.OIDC_ISSUER:
        return
    issuer = urlsplit(settings.OIDC_ISSUER)
    if issuer.scheme != "https" and issuer.hostname not in LOOPBACK:
        hint = "Write the issuer as its discovery document does, for example https://login.example.org/realms/lab."
        yield Error("OIDC_ISSUER is no https:// address.", hint=hint, id="rackrent.E013")
    if not (settings.OIDC_RP_CLIENT_ID and settings.OIDC_RP_CLIENT_SECRET):
        hint = "Register Rackrent at the provider, with PUBLIC_URL/oidc/callback/ as its redirect address."
        yield Error("OIDC_ISSUER needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET.", hint=hint, id="rackrent.E014")
    if settings.OIDC_RP_SIGN_ALGO[:2] not in {"RS", "ES"}:
        hint = "Use RS256, or another algorithm with a public key (RS…, ES…)."
        yield Error("OIDC_SIGN_ALGORITHM is no signature with a public key.", hint=hint, id="rackrent.E015")
    try:
        parse_rules(settings.OIDC_TEAM_ROLES)
    except ValueError as error:
        yield Error(f"OIDC_TEAM_ROLES: {error}.", id="rackrent.E016")
