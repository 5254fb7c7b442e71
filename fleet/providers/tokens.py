"""Bearer tokens that are fetched with a secret and run out."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

import httpx

from fleet.providers.errors import AuthFailed

# A token is fetched anew this long before it ends.
MARGIN_SECONDS = 60.0
# RFC 6749, 5.2: these come with 400.
BAD_CLIENT = dict.fromkeys(("invalid_client", "invalid_grant", "unauthorized_client"), AuthFailed)


class Token(httpx.Auth):
    """Puts the token that `fetch` gives, (token, seconds), on each request."""

    def __init__(self, fetch: Callable[[], tuple[str, float]]) -> None:
        self._fetch, self._token, self._ends = fetch, "", 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if time.monotonic() >= self._ends:
            self._token, seconds = self._fetch()
            self._ends = time.monotonic() + seconds - MARGIN_SECONDS
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request
