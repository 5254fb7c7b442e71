"""The sandbox: a provider that this installation runs itself, with machines that do not exist (docs/sandbox.md).

It answers on a loopback port. Only the installation's operator can move it, by environment: SANDBOX_PORT, by default the port above
RACKRENT_PORT.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

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
from fleet.providers.errors import Invalid, InvalidOption, NoCapacity, NotFound, Unavailable
from fleet.providers.http import JsonApi
from fleet.providers.orders import no_price_limit
from fleet.providers.reading import endless, path_of
from fleet.providers.registry import register
from fleet.providers.rows import Row, rows_of
from fleet.providers.sandbox_endings import ENDINGS, SEMANTICS
from fleet.providers.sandbox_facts import image_of, instance_of, offers_of

LABEL = "The sandbox"
PAGE_SIZE = 50
# Where an order can be told apart from the others again.
ORDER_LABEL = "rackrent-order"
MAX_PAGES = 1000
DEFAULT_WEB_PORT = 8400


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
        answer = self._object(self._api.get("account"))
        return AccountInfo(str(answer.get("id", "")), str(answer.get("currency", "USD")))

    def instances(self) -> Iterator[ProviderInstance]:
        yield from (instance_of(row) for row in self._every("instances"))

    def instance(self, ref: Ref) -> ProviderInstance | None:
        try:
            row = self._api.get(path_of("instances", ref.external_id))
        except NotFound:
            return None
        return instance_of(self._object(row))

    def start(self, ref: Ref) -> None:
        self._act("POST", ref, "start")

    def stop(self, ref: Ref) -> None:
        self._act("POST", ref, "stop")

    def reboot(self, ref: Ref) -> None:
        self._act("POST", ref, "reboot")

    def terminate(self, ref: Ref) -> None:
        try:
            self._act("DELETE", ref)
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        """Key and script are told too: there is nobody to let in and nothing to run, and an order is the same everywhere."""
        no_price_limit(spec, self.label)
        optional = {
            "region": spec.region,
            "image": spec.image_id,
            "disk_gb": spec.disk_gb,
            "ssh_public_key": spec.ssh_public_key,
            "user_data": spec.user_data,
        }
        ordered = {
            "offer": spec.offer_id,
            "name": spec.name,
            "market": spec.market.value,
            "labels": {**spec.labels, ORDER_LABEL: token},
            **{name: value for name, value in optional.items() if value not in ("", None)},
        }
        made = self._api.send("POST", "instances", json=ordered, headers={"Idempotency-Key": token})
        return instance_of(self._object(made)).ref

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        return image_of(self._act("POST", ref, "image", {"name": name}))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for row in self._every("offers"):
            yield from offers_of(row)

    def images(self) -> Iterator[ProviderImage]:
        yield from (image_of(row) for row in self._every("images"))

    @property
    def _api(self) -> JsonApi:
        return JsonApi(
            label=LABEL,
            base_url=f"http://127.0.0.1:{sandbox_port()}/v1/",
            headers={"Authorization": f"Bearer {self._key}"},
            secrets=[self._key],
            kinds={"no_capacity": NoCapacity},
        )

    def _act(self, method: str, ref: Ref, word: str = "", body: Row | None = None) -> Row:
        path = path_of("instances", ref.external_id, *([word] if word else []))
        return self._object(self._api.send(method, path, json=body or {}))

    def _object(self, answer: Any) -> Row:
        if not isinstance(answer, dict):
            raise Unavailable(f"{LABEL}'s answer is no JSON object.")
        return answer

    def _every(self, name: str) -> Iterator[Row]:
        """All rows of all pages. Raises Unavailable when the pages do not end."""
        cursor = ""
        for _ in range(MAX_PAGES):
            page = self._api.get(name, cursor=cursor, limit=str(PAGE_SIZE))
            yield from rows_of(page, name, LABEL)
            following = page.get("next")
            if following is None:
                return
            if not isinstance(following, str) or following <= cursor:
                break
            cursor = following
        raise endless(LABEL, name)
