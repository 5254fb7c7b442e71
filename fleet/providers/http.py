"""One JSON API over httpx, as a provider's adapter needs it: bounded answers, and every failure one of our errors.

Only reads are tried again, and once: nobody may rent or end a machine twice because an answer was lost.
Where an installation's operator points an adapter elsewhere, it is by environment: <KIND>_ENDPOINT_URL, as in RUNPOD_ENDPOINT_URL.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx

from fleet.providers.base import Ref
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NotFound,
    PartialCreate,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.redact import cut, redact

JSON = Any
# Code and message of an error answer's body, as a provider words them.
Problem = tuple[str, str]

CONNECT_SECONDS, READ_SECONDS = 5.0, 20.0
MAX_ANSWER_BYTES = 32 * 1024 * 1024
DETAIL_CHARS = 300
ERRORS: Mapping[int, type[ProviderError]] = {
    400: Invalid,
    401: AuthFailed,
    402: QuotaOrFunds,
    403: ScopeMissing,
    404: NotFound,
    409: WrongState,
    # An address, an offer or a version of the API is gone: no word about a machine.
    410: Unavailable,
    422: Invalid,
}
# A gateway's word that the API behind it did not get the request, or was not up.
TRIED_AGAIN = {502, 503, 504}


@cache
def trusted() -> ssl.SSLContext:
    """The authorities that vouch for providers, read once a process: that takes longer than most calls."""
    return httpx.create_ssl_context(trust_env=False)


def endpoint(kind: str, default: str) -> str:
    return os.environ.get(f"{kind.upper()}_ENDPOINT_URL", "").strip() or default


class JsonApi:
    """`label` begins error texts; `secrets` never stand in them; `problem` reads a refusal's body; `kinds` maps its codes to errors;
    `statuses` says what a status means where this provider means something else by it; `made` finds the machine that a refusal names
    although it refuses.
    """

    def __init__(
        self,
        *,
        label: str,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | None = None,
        secrets: Iterable[str] = (),
        problem: Callable[[JSON], Problem] | None = None,
        kinds: Mapping[str, type[ProviderError]] | None = None,
        statuses: Mapping[int, type[ProviderError]] | None = None,
        made: Callable[[JSON], Ref | None] | None = None,
    ) -> None:
        self._label, self._secrets = label, tuple(secrets)
        self._problem, self._kinds = problem or plain_problem, kinds or {}
        self._statuses, self._made = {**ERRORS, **(statuses or {})}, made or nothing_made
        self._arguments: dict[str, Any] = {"base_url": base_url, "headers": dict(headers or {}), "auth": auth}

    def __repr__(self) -> str:
        return f"<JsonApi {self._label}>"

    def get(self, path: str, *, json: JSON = None, **query: str) -> JSON:
        """The decoded body. Tried a second time when nobody answered."""
        try:
            return self._call("GET", path, json=json, query=query)
        except SilentError:
            return self._call("GET", path, json=json, query=query)

    def send(
        self,
        method: str,
        path: str,
        *,
        json: JSON = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        plain: bool = False,
    ) -> JSON:
        """The decoded body, None where there is none. Never tried again.

        `content`: a body that is signed already, to the byte. `plain`: an answer that is no JSON is its own text.
        """
        return self._call(method, path, json=json, content=content, headers=headers, plain=plain)

    def _call(
        self,
        method: str,
        path: str,
        *,
        json: JSON = None,
        content: bytes | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        plain: bool = False,
    ) -> JSON:
        timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        try:
            # A proxy of the surroundings must not see the key, and a redirect must not carry it elsewhere.
            with (
                httpx.Client(
                    timeout=timeout, trust_env=False, follow_redirects=False, verify=trusted(), **self._arguments
                ) as client,
                client.stream(method, path, json=json, content=content, params=query, headers=headers) as response,
            ):
                body = self._body(response)
        except httpx.HTTPError as error:
            raise SilentError(f"{self._label} does not answer ({type(error).__name__}).") from None
        if response.is_success:
            return self._decoded(response, body, plain=plain)
        raise self._refusal(response, body)

    def refusal(self, answer: JSON) -> ProviderError:
        """What the API refuses with a status of success."""
        response = httpx.Response(422, json=answer)
        return self._refusal(response, response.content)

    def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise Unavailable(f"{self._label}'s answer is larger than {MAX_ANSWER_BYTES >> 20} MiB.")
        return bytes(body)

    def _decoded(self, response: httpx.Response, body: bytes, *, plain: bool) -> JSON:
        if not body.strip():
            return None
        try:
            return httpx.Response(response.status_code, content=body).json()
        except ValueError:
            if plain:
                return body.decode(errors="replace").strip()
            raise Unavailable(f"{self._label}'s answer is not JSON.") from None

    def _refusal(self, response: httpx.Response, body: bytes) -> ProviderError:
        code, message, ref = self._read_problem(body)
        status = response.status_code
        detail = self._clean(message or code) or f"{self._label} answered {status}."
        if ref is not None:
            return PartialCreate(detail, ref)
        if status == 429 or self._kinds.get(code) is RateLimited:
            return RateLimited(detail, retry_after(response.headers.get("Retry-After", "")))
        # "It does not exist" is believed of the API alone: a gateway's 404 would end machines that run.
        known = None if status == 404 and not code else self._statuses.get(status)
        kind = self._kinds.get(code) or known
        if kind:
            return kind(detail)
        silent = SilentError if status in TRIED_AGAIN else Unavailable
        return silent(f"{self._label} answered {status}. {self._clean(message)}".rstrip())

    def _read_problem(self, body: bytes) -> tuple[str, str, Ref | None]:
        """Empty where the body is not the provider's own: a gateway's HTML, plain text."""
        try:
            content = httpx.Response(200, content=body).json()
            return *self._problem(content), self._made(content)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return "", "", None

    def _clean(self, text: str) -> str:
        return cut(redact(text, self._secrets), DETAIL_CHARS)


def nothing_made(_: JSON) -> Ref | None:
    return None


class SilentError(Unavailable):
    """Nobody answered, or a gateway did in place of the API."""


def plain_problem(body: JSON) -> Problem:
    """The shapes that most APIs use: {code, message}, {error: {code, message}}, {title, detail}."""
    error = body.get("error", body) if isinstance(body, dict) else {}
    if isinstance(error, str):
        return error, str(body.get("message") or body.get("msg") or "")
    code = error.get("code") or error.get("title") or ""
    return str(code), str(error.get("message") or error.get("detail") or "")


def retry_after(word: str) -> float | None:
    """Seconds, from a number or an HTTP date; None for anything else."""
    try:
        return max(float(word), 0.0)
    except ValueError:
        pass
    try:
        return max((parsedate_to_datetime(word) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None
