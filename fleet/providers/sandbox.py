"""The sandbox: a provider that this installation runs itself, with machines that do not exist (docs/sandbox.md).

It answers on a loopback port. Only the installation's operator can move it, by environment: SANDBOX_PORT, by default the port above
RACKRENT_PORT.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

import httpx

from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    InvalidOption,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.redact import cut
from fleet.providers.registry import register
from fleet.providers.sandbox_endings import ENDINGS, SEMANTICS
from fleet.providers.sandbox_facts import image_of, instance_of, offers_of

PAGE_SIZE = 50
# Where an order can be told apart from the others again.
ORDER_LABEL = "rackrent-order"
MAX_PAGES = 1000
TIMEOUT_SECONDS = 10.0
DEFAULT_WEB_PORT = 8400

ERRORS: Mapping[int, type[ProviderError]] = {
    400: Invalid,
    401: AuthFailed,
    402: QuotaOrFunds,
    403: ScopeMissing,
    404: NotFound,
    409: WrongState,
    422: Invalid,
}


def sandbox_port() -> int:
    """Raises Invalid for a setting that is no port."""
    word = os.environ.get("SANDBOX_PORT", "").strip()
    web = os.environ.get("RACKRENT_PORT", "").strip() or str(DEFAULT_WEB_PORT)
    try:
        port = int(word) if word else int(web) + 1
    except ValueError:
        raise Invalid("SANDBOX_PORT must be a port number.") from None
    if not 0 < port < 65_536:
        raise Invalid("SANDBOX_PORT must be a port number.")
    return port


@register
class Sandbox:
    kind: ClassVar[str] = "sandbox"
    label: ClassVar[str] = gettext_noop("Sandbox")
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="key",
            label=gettext_noop("Key"),
            help_text=gettext_noop("made by the sandbox itself when it first starts"),
            secret=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.START,
            Capability.STOP,
            Capability.TERMINATE,
            Capability.REBOOT,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.IMAGES,
            Capability.SAVE_IMAGE,
        }
    )
    # The sandbox keeps the key of an order for ever.
    create_is_idempotent: ClassVar[bool] = True
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        key = options["key"]
        if not key or not key.isascii() or not key.isprintable():
            raise InvalidOption("key", gettext_noop("Enter the key that the sandbox made."))
        self._key = key

    def verify(self) -> AccountInfo:
        with self._client() as client:
            answer = read(client, "account")
        return AccountInfo(str(answer.get("id", "")), str(answer.get("currency", "USD")))

    def instances(self) -> Iterator[ProviderInstance]:
        with self._client() as client:
            yield from (instance_of(row) for row in every(client, "instances"))

    def instance(self, ref: Ref) -> ProviderInstance | None:
        with self._client() as client:
            try:
                return instance_of(read(client, f"instances/{quote(ref.external_id, safe='')}"))
            except NotFound:
                return None

    def start(self, ref: Ref) -> None:
        self._act("POST", ref, "/start")

    def stop(self, ref: Ref) -> None:
        self._act("POST", ref, "/stop")

    def reboot(self, ref: Ref) -> None:
        self._act("POST", ref, "/reboot")

    def terminate(self, ref: Ref) -> None:
        try:
            self._act("DELETE", ref)
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        ordered = {
            "offer": spec.offer_id,
            "name": spec.name,
            "market": spec.market.value,
            "labels": {**spec.labels, ORDER_LABEL: token},
            **{name: value for name, value in (("region", spec.region), ("image", spec.image_id)) if value},
            **({"disk_gb": spec.disk_gb} if spec.disk_gb is not None else {}),
        }
        with self._client() as client:
            made = send(client, "POST", "instances", json=ordered, headers={"Idempotency-Key": token})
        return instance_of(made).ref

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        return image_of(self._act("POST", ref, "/image", {"name": name}))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        with self._client() as client:
            for row in every(client, "offers"):
                yield from offers_of(row)

    def _act(self, method: str, ref: Ref, word: str = "", body: dict[str, Any] | None = None) -> dict[str, Any]:
        with self._client() as client:
            return send(client, method, f"instances/{quote(ref.external_id, safe='')}{word}", json=body or {})

    def images(self) -> Iterator[ProviderImage]:
        with self._client() as client:
            yield from (image_of(row) for row in every(client, "images"))

    def _client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{sandbox_port()}/v1/",
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=TIMEOUT_SECONDS,
            # A proxy of the surroundings must not see the key.
            trust_env=False,
        )


def every(client: httpx.Client, name: str) -> Iterator[dict[str, Any]]:
    """All rows of all pages. Raises Unavailable when the pages do not end."""
    cursor = ""
    for _ in range(MAX_PAGES):
        page = read(client, name, cursor=cursor, limit=str(PAGE_SIZE))
        rows, following = page.get(name), page.get("next")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Unavailable(f"The sandbox's answer has no list of {name}.")
        yield from rows
        if following is None:
            return
        if not isinstance(following, str) or following <= cursor:
            break
        cursor = following
    raise Unavailable(f"The sandbox's list of {name} does not end.")


def read(client: httpx.Client, path: str, **query: str) -> dict[str, Any]:
    return answered(client, client.build_request("GET", path, params=query))


def send(client: httpx.Client, method: str, path: str, **more: Any) -> dict[str, Any]:
    """Never tried a second time."""
    return answered(client, client.build_request(method, path, **more))


def answered(client: httpx.Client, request: httpx.Request) -> dict[str, Any]:
    try:
        response = client.send(request)
        content = response.json() if response.is_success else None
    except httpx.HTTPError as error:
        raise Unavailable(f"The sandbox does not answer ({type(error).__name__}).") from error
    except ValueError:
        raise Unavailable("The sandbox's answer is not JSON.") from None
    if not response.is_success:
        raise refusal(response)
    if not isinstance(content, dict):
        raise Unavailable("The sandbox's answer is no JSON object.")
    return content


def refusal(response: httpx.Response) -> ProviderError:
    code, message = problem(response)
    if response.status_code == 429:
        return RateLimited(message, retry_after(response))
    if code == "no_capacity":
        return NoCapacity(message)
    kind = ERRORS.get(response.status_code)
    return kind(message) if kind else Unavailable(f"The sandbox answered {response.status_code}. {message}".rstrip())


def problem(response: httpx.Response) -> tuple[str, str]:
    """Code and message of an error answer, empty where it is not the sandbox's own."""
    try:
        error = response.json()["error"]
        return cut(error["code"], 40), cut(error["message"], 300)
    except (ValueError, KeyError, TypeError):
        return "", ""


def retry_after(response: httpx.Response) -> float | None:
    try:
        return float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return None
