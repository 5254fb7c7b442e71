"""Google's Compute Engine over JsonApi; Google's own library signs the exchange of a service account's key for tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import httpx

from fleet.providers import http
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    InvalidOption,
    NoCapacity,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JSON, JsonApi, Problem, endpoint
from fleet.providers.reading import MAX_PAGES, endless
from fleet.providers.rows import Row, promised
from fleet.providers.sdk import sdk
from fleet.providers.values import gettext_noop

LABEL = "Google Cloud"
REQUIREMENT = "google-auth>=2.40,<3"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
PAGE_SIZE = 500
# https://cloud.google.com/compute/docs/troubleshooting; of an error's reason, or of an operation's error.
REASONS: Mapping[str, type[ProviderError]] = {
    "rateLimitExceeded": RateLimited,
    "userRateLimitExceeded": RateLimited,
    "RATE_LIMIT_EXCEEDED": RateLimited,
    "quotaExceeded": QuotaOrFunds,
    "QUOTA_EXCEEDED": QuotaOrFunds,
    "accessNotConfigured": ScopeMissing,
    "resourceNotReady": WrongState,
    "resourceInUseByAnotherResource": WrongState,
    "RESOURCE_NOT_READY": WrongState,
    "ZONE_RESOURCE_POOL_EXHAUSTED": NoCapacity,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": NoCapacity,
    "STOCKOUT": NoCapacity,
    "INTERNAL_ERROR": Unavailable,
}


def key_of(text: str) -> Row:
    """A service account's key file. Where its tokens come from is not taken from it: whoever types it must not choose what we call."""
    try:
        key = json.loads(text)
        fits = all(isinstance(key[name], str) and key[name] for name in ("client_email", "private_key", "project_id"))
    except (ValueError, TypeError, KeyError):
        fits = False
    if not fits or key.get("type") != "service_account":
        message = gettext_noop("Paste the whole JSON key file of a service account.")
        raise InvalidOption("service_account", message)
    return {name: key[name] for name in ("type", "client_email", "private_key", "project_id")}


def exchange(url: str, method: str = "GET", body: Any = None, headers: Any = None, **_: Any) -> Any:
    """The transport that Google's library asks for, on our own client."""
    try:
        answer = httpx.request(
            method,
            url,
            content=body,
            headers=headers,
            timeout=http.READ_SECONDS,
            trust_env=False,
            follow_redirects=False,
            verify=http.trusted(),
        )
    except httpx.HTTPError as error:
        raise http.SilentError(f"{LABEL} does not answer ({type(error).__name__}).") from None
    return SimpleNamespace(status=answer.status_code, headers=answer.headers, data=answer.content)


class Token(httpx.Auth):
    """Bearer tokens of a service account, fetched when first needed and anew when they run out."""

    def __init__(self, key: Row, token_url: str) -> None:
        self._key, self._token_url = key, token_url
        self._credentials: Any = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._token()}"
        yield request

    def _token(self) -> str:
        errors = sdk(LABEL, "google.auth.exceptions", REQUIREMENT)
        try:
            if self._credentials is None:
                self._credentials = self._made()
            if not self._credentials.valid:
                self._credentials.refresh(exchange)
        except errors.RefreshError:
            # Its text holds what Google answered, which may echo the assertion.
            raise AuthFailed("Google refuses the service account's key. Was it deleted or disabled?") from None
        except errors.GoogleAuthError as error:
            raise Unavailable(f"{LABEL} gives no token ({type(error).__name__}).") from None
        return str(self._credentials.token)

    def _made(self) -> Any:
        accounts = sdk(LABEL, "google.oauth2.service_account", REQUIREMENT)
        info = {**self._key, "token_uri": self._token_url}
        try:
            return accounts.Credentials.from_service_account_info(info, scopes=[SCOPE])
        except ValueError:
            message = gettext_noop("The private key in it cannot be read. Paste the file as Google gave it.")
            raise InvalidOption("service_account", message) from None


def problem(body: JSON) -> Problem:
    error = body["error"]
    reason = next((row.get("reason", "") for row in error.get("errors", ())), "") or error.get("status", "")
    return reason or str(error["code"]), f"{error.get('message', '')} ({reason})" if reason else error.get(
        "message", ""
    )


class Compute:
    """One project's API; paths begin below it, as in "aggregated/instances"."""

    def __init__(self, text: str, key: Row) -> None:
        self.project = key["project_id"]
        base_url = endpoint("google", "https://compute.googleapis.com").rstrip("/")
        own = base_url != "https://compute.googleapis.com"
        self._api = JsonApi(
            label=LABEL,
            base_url=f"{base_url}/compute/v1/projects/{self.project}/",
            auth=Token(key, f"{base_url}/token" if own else "https://oauth2.googleapis.com/token"),
            secrets=(text, key["private_key"]),
            problem=problem,
            kinds=REASONS,
        )

    def get(self, path: str, **query: str) -> Row:
        with promised(LABEL):
            answer: Row = self._api.get(path, **query)
            if not str(answer["kind"]).startswith("compute#"):
                raise ValueError(answer["kind"])
        return answer

    def pages(self, path: str, **query: str) -> Iterator[Row]:
        more: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            answer = self.get(path, maxResults=str(PAGE_SIZE), **query, **more)
            yield answer
            if not answer.get("nextPageToken"):
                return
            more = {"pageToken": answer["nextPageToken"]}
        raise endless(LABEL, path)

    def rows_everywhere(self, things: str, **query: str) -> Iterator[Row]:
        """Rows of all zones. Google answers although a zone cannot be reached, and says so beside it: that is no complete list."""
        for page in self.pages(f"aggregated/{things}", **query):
            refuse_gaps(page)
            for scope in page.get("items", {}).values():
                refuse_gaps(scope)
                yield from scope.get(things, ())

    def send(self, method: str, path: str, body: JSON = None) -> Row:
        """An Operation, which is accepted and not done."""
        answer = self._api.send(method, path, json=body)
        with promised(LABEL):
            if answer["kind"] != "compute#operation":
                raise ValueError(answer["kind"])
            refuse_failure(answer)
        operation: Row = answer
        return operation


def refuse_gaps(page: Row) -> None:
    code = page.get("warning", {}).get("code", "NO_RESULTS_ON_PAGE")
    if code != "NO_RESULTS_ON_PAGE" or page.get("unreachables"):
        message = page.get("warning", {}).get("message") or ", ".join(page.get("unreachables", ()))
        raise Unavailable(f"{LABEL}'s list is not complete: {code} {message}".rstrip())


def refuse_failure(operation: Row) -> None:
    """Raises the error that an operation ended with."""
    for error in operation.get("error", {}).get("errors", ()):
        raise kind_of(error.get("code", ""))(f"{error.get('message', '')} ({error.get('code', '')})")


def kind_of(code: str) -> Callable[[str], ProviderError]:
    return REASONS.get(code) or Invalid
