"""Azure's Resource Manager over JsonApi: tokens of a service principal, pages whose next address Azure tells, one subscription."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from fleet.providers.errors import (
    AuthFailed,
    NoCapacity,
    ProviderError,
    QuotaOrFunds,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JSON, JsonApi, Problem, endpoint, plain_problem
from fleet.providers.reading import MAX_PAGES, endless
from fleet.providers.rows import Row, promised, rows_of
from fleet.providers.tokens import BAD_CLIENT, Token

LABEL = "Azure"
COMPUTE_VERSION, SKUS_VERSION, NETWORK_VERSION = "2026-04-01", "2021-07-01", "2024-05-01"
PUBLIC = "https://management.azure.com"
# Who gives tokens for each of Microsoft's clouds; any other address answers for them itself.
LOGINS: Mapping[str, str] = {
    PUBLIC: "https://login.microsoftonline.com",
    "https://management.chinacloudapi.cn": "https://login.chinacloudapi.cn",
    "https://management.usgovcloudapi.net": "https://login.microsoftonline.us",
}
# https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
CODES: Mapping[str, type[ProviderError]] = {
    "AuthorizationFailed": ScopeMissing,
    # Said with 404, and no word about a machine.
    "SubscriptionNotFound": ScopeMissing,
    "InvalidAuthenticationTokenTenant": AuthFailed,
    "AllocationFailed": NoCapacity,
    "ZonalAllocationFailed": NoCapacity,
    "OverconstrainedAllocationRequest": NoCapacity,
    "OverconstrainedZonalAllocationRequest": NoCapacity,
    "SkuNotAvailable": NoCapacity,
    "QuotaExceeded": QuotaOrFunds,
    "ReadOnlyDisabledSubscription": QuotaOrFunds,
    "OperationNotAllowed": WrongState,
}


class NameTaken(WrongState):
    """What was to be made where nothing is has been made before."""


def problem(body: JSON) -> Problem:
    """Azure says that a quota is used up in the words of "not allowed"."""
    error = body["error"]
    code, message = str(error["code"]), str(error.get("message", ""))
    return (
        "QuotaExceeded" if code == "OperationNotAllowed" and "quota" in message.lower() else code,
        f"{code}: {message}",
    )


def refused_token(body: JSON) -> Problem:
    """RFC 6749's refusal, with Microsoft's words: the first line says it, the others are traces."""
    if isinstance(body.get("error"), dict):
        return plain_problem(body)
    return str(body["error"]), str(body.get("error_description", "")).split("\r\n")[0]


class Arm:
    """One subscription. Paths begin below it, as in "providers/Microsoft.Compute/virtualMachines"."""

    def __init__(self, tenant: str, client: str, secret: str, subscription: str) -> None:
        self._base_url = endpoint("azure", PUBLIC).rstrip("/")
        self._root = f"/subscriptions/{subscription}"
        login = LOGINS.get(self._base_url, self._base_url)
        self._door = JsonApi(label=LABEL, base_url=login, secrets=(secret,), problem=refused_token, kinds=BAD_CLIENT)
        self._asked = (quote(tenant, safe=""), client, secret)
        self._api = JsonApi(
            label=LABEL,
            base_url=self._base_url,
            auth=Token(self._token),
            secrets=(secret,),
            problem=problem,
            kinds=CODES,
            statuses={412: NameTaken},
        )

    def get(self, path: str, version: str = COMPUTE_VERSION, **query: str) -> Row:
        answer: Row = self._api.get(f"{self._root}/{path}", **{"api-version": version, **query})
        return answer

    def rows(self, path: str, version: str = COMPUTE_VERSION, **query: str) -> Iterator[Row]:
        """Every row of every page."""
        place, asked = f"{self._root}/{path}", {"api-version": version, **query}
        for _ in range(MAX_PAGES):
            answer = self._api.get(place, **asked)
            yield from rows_of(answer, "value", LABEL)
            if not answer.get("nextLink"):
                return
            place, asked = self._next(answer["nextLink"])
        raise endless(LABEL, path)

    def send(self, method: str, path: str, body: JSON = None, **headers: str) -> Row:
        address = f"{self._root}/{path}?{urlencode({'api-version': COMPUTE_VERSION})}"
        answer: Row = self._api.send(method, address, json=body, headers=headers)
        return answer

    def _next(self, link: object) -> tuple[str, dict[str, str]]:
        """Raises Unavailable for an address elsewhere: the token must not follow it."""
        parts = urlsplit(str(link))
        if origin(parts) != origin(urlsplit(self._base_url)):
            raise Unavailable(f"{LABEL} names a next page that is not its own.")
        return parts.path, dict(parse_qsl(parts.query))

    def _token(self) -> tuple[str, float]:
        tenant, client, secret = self._asked
        form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "client_secret": secret,
            "scope": f"{self._base_url}/.default",
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = self._door.send(
            "POST", f"/{tenant}/oauth2/v2.0/token", content=urlencode(form).encode(), headers=headers
        )
        with promised(LABEL):
            return str(answer["access_token"]), float(answer["expires_in"])


def origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Azure now and then writes the port that goes without saying."""
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
