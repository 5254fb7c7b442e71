"""Crusoe's signature of a request: HMAC-SHA256 over path, query, method and time, with the secret that the console shows in URL-safe base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Generator
from datetime import UTC, datetime

import httpx

from fleet.providers.base import gettext_noop
from fleet.providers.errors import InvalidOption

VERSION = "1.0"


class Signature(httpx.Auth):
    def __init__(self, access_key: str, secret_key: str) -> None:
        """Raises InvalidOption for a secret that is no base64."""
        self._access_key, self._secret = access_key, decoded(secret_key)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        # Signed anew each time: a signature is good for some minutes, and httpx may send one request twice.
        now = datetime.now(UTC).replace(microsecond=0).isoformat()
        signature = signed(self._secret, request.method, request.url, now)
        request.headers["X-Crusoe-Timestamp"] = now
        request.headers["Authorization"] = f"Bearer {VERSION}:{self._access_key}:{signature}"
        yield request


def signed(secret: bytes, method: str, url: httpx.URL, timestamp: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in sorted(url.params.multi_items()))
    payload = f"{url.path}\n{query}\n{method}\n{timestamp}\n"
    digest = hmac.new(secret, payload.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def decoded(secret_key: str) -> bytes:
    try:
        return base64.b64decode(secret_key + "=" * (-len(secret_key) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidOption("secret_key", gettext_noop("This is no secret of Crusoe's. Copy it again.")) from None
