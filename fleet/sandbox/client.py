"""Speaks the agent protocol (docs/agent-protocol.md) over HTTP: one call, one attempt, and what the answer means for the next.

CallError
├── TryLaterError       nothing of it was kept, or nobody knows: send it again. `wait_seconds`: what the server asked for
├── TokenRefusedError   401: the token is unknown, expired, revoked or used up
├── TooLargeError       413: send less at once
└── RefusedError        this request will never be taken: `status` is the answer's, `field` the part of the body that is wrong
"""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import httpx

JSON = dict[str, Any]
# Below this a packed body is hardly smaller.
PACK_FROM_BYTES = 1 << 10
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 30.0


class CallError(Exception):
    pass


class TryLaterError(CallError):
    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


class TokenRefusedError(CallError):
    pass


class TooLargeError(CallError):
    pass


class RefusedError(CallError):
    def __init__(self, reason: str, *, status: int, field: str = "") -> None:
        super().__init__(f"{reason} (field {field})" if field else reason)
        self.status, self.field = status, field

    @property
    def is_about_address(self) -> bool:
        """Whether there is no ingest at this address at all, whatever one sends."""
        return self.status in {301, 302, 303, 307, 308, 403, 404, 405}


class IngestClient:
    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url = url.rstrip("/")
        self.http = http

    async def enrol(self, token: str, body: JSON) -> JSON:
        """The answer names `instance_id`, `token` and `config`."""
        return await self._post("enrol", token, body)

    async def samples(self, token: str, body: JSON) -> JSON:
        return await self._post("samples", token, body)

    async def heartbeat(self, token: str, body: JSON) -> JSON:
        return await self._post("heartbeat", token, body)

    async def actions(self, token: str, body: JSON) -> JSON:
        return await self._post("actions", token, body)

    async def _post(self, name: str, token: str, body: JSON) -> JSON:
        content = json.dumps(body, separators=(",", ":")).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if len(content) >= PACK_FROM_BYTES:
            content, headers["Content-Encoding"] = gzip.compress(content, 1), "gzip"
        try:
            response = await self.http.post(f"{self.url}/ingest/v1/{name}", content=content, headers=headers)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise TryLaterError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        return _answer(response)


def _answer(response: httpx.Response) -> JSON:
    if response.is_success:
        content = _json(response)
        if content is None:
            raise TryLaterError(f"{response.status_code} without a JSON object: is this the address of a dashboard?")
        return content
    problem = _json(response) or {}
    reason = f"{response.status_code} {problem.get('error', '')} {problem.get('detail', '')}".strip()
    if response.status_code == 401:
        raise TokenRefusedError(reason)
    if response.status_code == 413:
        raise TooLargeError(reason)
    if response.status_code == 429 or response.status_code >= 500:
        raise TryLaterError(reason, _retry_after(response))
    raise RefusedError(reason, status=response.status_code, field=str(problem.get("field", "")))


def _json(response: httpx.Response) -> JSON | None:
    try:
        content = response.json()
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return min(max(float(response.headers.get("Retry-After", "")), 0.0), 300.0)
    except ValueError:
        return None


class Backoff:
    """How long to wait before the next attempt: what the server asked for, else twice as long each time; never all at once."""

    def __init__(self) -> None:
        self.failures = 0

    def reset(self) -> None:
        self.failures = 0

    def next_wait(self, error: TryLaterError) -> float:
        own = min(FIRST_WAIT_SECONDS * 2**self.failures, LONGEST_WAIT_SECONDS)
        self.failures = min(self.failures + 1, 16)
        return (own if error.wait_seconds is None else error.wait_seconds) * random.uniform(1.0, 1.3)  # noqa: S311
