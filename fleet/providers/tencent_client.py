"""Tencent's SDK for CVM: it builds and signs each call; JsonApi carries it, so that failures are ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JsonApi, Problem, endpoint
from fleet.providers.reading import MAX_PAGES, complete, endless
from fleet.providers.redact import cut, redact
from fleet.providers.rows import Row, promised, rows_of
from fleet.providers.sdk import read_again, sdk

LABEL = "Tencent Cloud"
REQUIREMENT = "tencentcloud-sdk-python-cvm>=3.0.1400,<4"
PAGE_SIZE = 100
DETAIL_CHARS = 300
# https://cloud.tencent.com/document/api/213/30435; a code that is not here is looked up by its part before the first dot.
CODES: Mapping[str, type[ProviderError]] = {
    "AuthFailure": AuthFailed,
    "AuthFailure.UnauthorizedOperation": ScopeMissing,
    "UnauthorizedOperation": ScopeMissing,
    "InvalidInstanceId.NotFound": NotFound,
    "ResourceNotFound.InvalidInstanceIdNotFound": NotFound,
    "InvalidInstanceState": WrongState,
    "IncorrectInstanceState": WrongState,
    "MutexOperation": WrongState,
    "OperationDenied": WrongState,
    "UnsupportedOperation": WrongState,
    "ResourceInsufficient": NoCapacity,
    "ResourcesSoldOut": NoCapacity,
    "ResourceUnavailable": NoCapacity,
    "InvalidParameterValue.InsufficientOffering": NoCapacity,
    "InvalidParameterValue.InsufficientPrice": NoCapacity,
    "InvalidAccount": QuotaOrFunds,
    "InstancesQuotaLimitExceeded": QuotaOrFunds,
    "LimitExceeded": QuotaOrFunds,
    "OverQuota": QuotaOrFunds,
    "RequestLimitExceeded": RateLimited,
    "InternalError": Unavailable,
    "InternalServerError": Unavailable,
    "FailedOperation": Unavailable,
}


def problem(body: Any) -> Problem:
    """Of a refusal that has a status of its own: a gateway's. CVM itself refuses with 200."""
    error = body["Response"]["Error"]
    return str(error["Code"]), f"{error['Code']}: {error.get('Message', '')}"


@cache
def signing_client() -> Any:
    client: Any = sdk(LABEL, "tencentcloud.cvm.v20170312.cvm_client", REQUIREMENT).CvmClient
    internal: Any = sdk(LABEL, "tencentcloud.common.http.request", REQUIREMENT).RequestInternal

    class Signing(client):  # type: ignore[misc]
        def signed(self, action: str, parameters: Row) -> Any:
            """The request as the SDK would send it, with `header` and `data`."""
            request = internal(self._get_endpoint(), "POST", "/", header={})
            self._build_req_inter(action, parameters, request)
            return request

    return Signing


class Cvm:
    """One region's CVM. `read` and `act` take an action and its parameters, and give what stands under "Response"."""

    def __init__(self, secret_id: str, secret_key: str, region: str) -> None:
        self.region, self._secret_key = region, secret_key
        base_url = endpoint("tencent", "https://cvm.tencentcloudapi.com")
        host = base_url.split("://", 1)[1].rstrip("/")
        http_profile = sdk(LABEL, "tencentcloud.common.profile.http_profile", REQUIREMENT).HttpProfile(endpoint=host)
        profile = sdk(LABEL, "tencentcloud.common.profile.client_profile", REQUIREMENT).ClientProfile(
            httpProfile=http_profile
        )
        credential = sdk(LABEL, "tencentcloud.common.credential", REQUIREMENT).Credential(secret_id, secret_key)
        self._client = signing_client()(credential, region, profile)
        self._api = JsonApi(label=LABEL, base_url=base_url, secrets=(secret_key,), problem=problem, kinds=CODES)

    def read(self, action: str, **parameters: Any) -> Row:
        answer: Row = read_again(lambda: self.act(action, **parameters))
        return answer

    def act(self, action: str, **parameters: Any) -> Row:
        request = self._client.signed(action, parameters)
        answer = self._api.send("POST", "/", content=request.data.encode(), headers=request.header)
        with promised(LABEL):
            told: Row = answer["Response"]
            refusal = told.get("Error")
            if refusal is None and "RequestId" in told:
                return told
            code, message = problem(answer)
        text = redact(message, (self._secret_key,))
        raise kind_of(code)(cut(text, DETAIL_CHARS))

    def pages(self, action: str, rows: str, **parameters: Any) -> Iterator[Row]:
        """Every row of every page. Raises Unavailable where fewer come than are counted."""
        seen = 0
        for _ in range(MAX_PAGES):
            answer = self.read(action, **parameters, Limit=PAGE_SIZE, Offset=seen)
            found = rows_of(answer, rows, LABEL)
            yield from found
            seen += len(found)
            if seen >= answer["TotalCount"] or not found:
                complete(seen, answer["TotalCount"], LABEL)
                return
        raise endless(LABEL, rows)


def kind_of(code: str) -> type[ProviderError]:
    return CODES.get(code) or CODES.get(code.split(".", maxsplit=1)[0]) or Invalid
