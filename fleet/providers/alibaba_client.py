"""Alibaba's SDK for ECS: it builds, signs and understands each call; JsonApi carries it, so that failures are ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from fleet.providers.errors import (
    AuthFailed,
    NoCapacity,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JsonApi, Problem, endpoint
from fleet.providers.reading import MAX_PAGES, endless
from fleet.providers.rows import Row, promised
from fleet.providers.sdk import read_again, sdk

LABEL = "Alibaba Cloud"
REQUIREMENT = "alibabacloud-ecs20140526>=7.2,<8"
ALGORITHM = "ACS3-HMAC-SHA256"
# https://api.alibabacloud.com/document/Ecs/2014-05-26/errorCode; a code that is not here is looked up by its part before the first dot.
CODES: Mapping[str, type[ProviderError]] = {
    "InvalidAccessKeyId": AuthFailed,
    "InvalidAccessKeySecret": AuthFailed,
    "SignatureDoesNotMatch": AuthFailed,
    "IncompleteSignature": AuthFailed,
    "InvalidSecurityToken": AuthFailed,
    "Forbidden": ScopeMissing,
    "NoPermission": ScopeMissing,
    "UnauthorizedOperation": ScopeMissing,
    "Throttling": RateLimited,
    "IncorrectInstanceStatus": WrongState,
    "InvalidOperation": WrongState,
    "OperationConflict": WrongState,
    "OperationDenied": WrongState,
    "OperationDenied.NoStock": NoCapacity,
    "OperationDenied.ZoneNotAllowed": NoCapacity,
    "Zone.NotOnSale": NoCapacity,
    "InvalidResourceType.NotSupported": NoCapacity,
    "QuotaExceed": QuotaOrFunds,
    "InvalidAccountStatus": QuotaOrFunds,
    "Account.Arrearage": QuotaOrFunds,
    "InsufficientBalance": QuotaOrFunds,
}


def problem(body: Any) -> Problem:
    code = str(body["Code"])
    family = code if code in CODES else code.split(".", maxsplit=1)[0]
    return family if family in CODES else code, f"{code}: {body.get('Message', '')}"


@cache
def carried_client() -> Any:
    """The SDK's client, whose calls leave by JsonApi instead of its own connections: those lose the status of what is not JSON."""
    client: Any = sdk(LABEL, "alibabacloud_ecs20140526.client", REQUIREMENT).Client
    utils = sdk(LABEL, "alibabacloud_tea_openapi.utils", REQUIREMENT).Utils
    request_class = sdk(LABEL, "darabonba.request", REQUIREMENT).DaraRequest

    class Carried(client):  # type: ignore[misc]
        api: JsonApi
        key: tuple[str, str]

        def call_api(self, params: Any, request: Any, runtime: Any) -> Row:
            """As the SDK's: {"body": …} of an answer that succeeded. Raises our errors."""
            signed = request_class()
            signed.method, signed.pathname, signed.query = "POST", "/", dict(request.query or {})
            digest = utils.hash(b"", ALGORITHM).hex()
            signed.headers = {
                "host": self._endpoint,
                "x-acs-version": params.version,
                "x-acs-action": params.action,
                "x-acs-date": utils.get_timestamp(),
                "x-acs-signature-nonce": utils.get_nonce(),
                "x-acs-content-sha256": digest,
                "accept": "application/json",
            }
            signed.headers["Authorization"] = utils.get_authorization(signed, ALGORITHM, digest, *self.key)
            query = urlencode(signed.query, quote_via=quote)
            body = self.api.send("POST", f"/?{query}", headers=signed.headers)
            return {"body": body, "headers": {}, "statusCode": 200}

    return Carried


class Ecs:
    """One region's ECS. `read` and `act` take an action in the SDK's spelling and its parameters, and give the body as JSON names it."""

    def __init__(self, access_key_id: str, access_key_secret: str, region: str) -> None:
        config = sdk(LABEL, "alibabacloud_tea_openapi.utils_models", REQUIREMENT).Config(
            access_key_id=access_key_id, access_key_secret=access_key_secret, region_id=region
        )
        self.region = region
        self._client = carried_client()(config)
        base_url = endpoint("alibaba", f"https://{self._client._endpoint}")  # noqa: SLF001 - the SDK's table of regions
        self._client._endpoint = base_url.split("://", 1)[1].rstrip("/")  # noqa: SLF001 - it is signed as the host
        self._client.key = (access_key_id, access_key_secret)
        secrets = (access_key_secret,)
        self._client.api = JsonApi(label=LABEL, base_url=base_url, secrets=secrets, problem=problem, kinds=CODES)

    def read(self, action: str, **parameters: Any) -> Row:
        answer: Row = read_again(lambda: self.act(action, **parameters))
        return answer

    def pages(self, action: str, **parameters: Any) -> Iterator[Row]:
        """Every page's body. Raises Unavailable where they do not end."""
        more: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            answer = self.read(action, **parameters, **more)
            yield answer
            more = {"NextToken": answer.get("NextToken") or ""}
            if not more["NextToken"]:
                return
        raise endless(LABEL, action)

    def act(self, action: str, **parameters: Any) -> Row:
        models = sdk(LABEL, "alibabacloud_ecs20140526.models", REQUIREMENT)
        request = getattr(models, "".join(word.title() for word in action.split("_")) + "Request")()
        request.from_map(parameters)
        runtime = sdk(LABEL, "darabonba.runtime", REQUIREMENT).RuntimeOptions()
        with promised(LABEL):
            answer = getattr(self._client, f"{action}_with_options")(request, runtime).body
            body: Row = answer.to_map()
        if "RequestId" not in body:
            raise Unavailable(f"{LABEL}'s answer is not in the form of its API.")
        return body
