"""Verda, once DataCrunch: https://api.verda.com/v1/docs. A bearer token is fetched with the client's credentials and kept while it lasts.

Shutting down does not stop the charge, and hibernation gives the machine up: there is no STOP here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    Market,
    Money,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import NotFound, QuotaOrFunds, Unavailable
from fleet.providers.http import JsonApi, endpoint
from fleet.providers.orders import (
    chosen_image,
    known_key,
    limit_on_spot,
    no_price_limit,
    order_refusals,
    plain_name,
    tags_of,
)
from fleet.providers.reading import list_of, path_of, required
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised
from fleet.providers.tokens import BAD_CLIENT, Token
from fleet.providers.verda_endings import ENDINGS, SEMANTICS
from fleet.providers.verda_facts import currency_of, image_of, instance_of, location_of, offers_of

LABEL = "Verda"
# What an action would be refused in, or is on its way to already.
STARTS = {"offline": "start", "hibernating": "restore"}


@register
class Verda:
    kind: ClassVar[str] = "verda"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="client_id", label=gettext_noop("Client id")),
        Field(
            name="client_secret",
            label=gettext_noop("Client secret"),
            help_text=gettext_noop("of the project's cloud API credentials"),
            secret=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.START,
            Capability.TERMINATE,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.IMAGES,
            Capability.BALANCE,
        }
    )
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        self._client_id = required(options, "client_id")
        self._client_secret = required(options, "client_secret")
        base_url = endpoint(self.kind, "https://api.verda.com/v1/")
        secrets = [self._client_secret]
        self._door = JsonApi(label=LABEL, base_url=base_url, secrets=secrets, kinds=BAD_CLIENT)
        self._api = JsonApi(
            label=LABEL,
            base_url=base_url,
            auth=Token(self._token),
            secrets=secrets,
            kinds={"insufficient_funds": QuotaOrFunds},
        )

    def verify(self) -> AccountInfo:
        return AccountInfo(currency=self.balance().currency)

    def instances(self) -> Iterator[ProviderInstance]:
        for row in list_of(self._api.get("instances"), LABEL):
            with promised(LABEL):
                made = instance_of(row)
            yield made

    def instance(self, ref: Ref) -> ProviderInstance | None:
        row = self._row(ref)
        with promised(LABEL):
            return None if row is None else instance_of(row)

    def start(self, ref: Ref) -> None:
        row = self._row(ref)
        if row is None:
            raise NotFound(f"{LABEL} has no machine {ref.external_id}.")
        action = STARTS.get(str(row.get("status")))
        if action:
            self._act(ref, action)

    def terminate(self, ref: Ref) -> None:
        """The system's volume goes with the machine, into the trash; data volumes are not ours to delete."""
        row = self._row(ref)
        if row is None:
            return
        volumes = [str(row["os_volume_id"])] if row.get("os_volume_id") else []
        try:
            self._act(ref, "delete", volume_ids=volumes)
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        no_price_limit(spec, LABEL)
        limit_on_spot(spec, LABEL)
        body: dict[str, object] = {
            "instance_type": spec.offer_id,
            "image": chosen_image(spec.image_id, LABEL),
            "hostname": plain_name(spec.name) or token,
            "description": " ".join(tags_of(spec.labels, token)),
            "location_code": spec.region,
            "is_spot": spec.market is Market.SPOT,
            "ssh_key_ids": [self._key_id(spec.ssh_public_key, token)] if spec.ssh_public_key else [],
        }
        if spec.user_data:
            body["startup_script_id"] = self._made("scripts", {"name": token, "script": spec.user_data})
        if spec.disk_gb:
            body["os_volume"] = {"name": f"{token}-os", "size": spec.disk_gb}
        with order_refusals():
            return Ref(self._made("instances", body), spec.region)

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        kinds = list_of(self._api.get("instance-types", currency="usd"), LABEL)
        for market in (Market.ON_DEMAND, Market.SPOT):
            places = self._places(spot=market is Market.SPOT)
            for kind in kinds:
                with promised(LABEL):
                    made = list(offers_of(kind, market, places.get(str(kind["instance_type"]), ())))
                yield from made

    def images(self) -> Iterator[ProviderImage]:
        """What machines can be started from. Verda knows no images of an account's own."""
        for row in list_of(self._api.get("images"), LABEL):
            with promised(LABEL):
                made = image_of(row)
            yield made

    def balance(self) -> Money:
        answer = self._api.get("balance")
        with promised(LABEL):
            return Money(Decimal(str(answer["amount"])), currency_of(answer))

    def _token(self) -> tuple[str, float]:
        asked = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_secret": self._client_secret,
        }
        answer = self._door.send("POST", "oauth2/token", json=asked)
        with promised(LABEL):
            return str(answer["access_token"]), float(answer["expires_in"])

    def _row(self, ref: Ref) -> Row | None:
        try:
            row = self._api.get(path_of("instances", ref.external_id))
        except NotFound:
            return None
        if not isinstance(row, dict):
            raise Unavailable(f"{LABEL}'s answer is no machine.")
        return row

    def _act(self, ref: Ref, action: str, **more: object) -> None:
        self._api.send("PUT", "instances", json={"id": [ref.external_id], "action": action, **more})

    def _made(self, path: str, body: Mapping[str, object]) -> str:
        """The id of what was made: the answer is nothing but the id, with or without JSON's quotes."""
        made = self._api.send("POST", path, json=body, plain=True)
        if not isinstance(made, str) or not made:
            raise Unavailable(f"{LABEL}'s answer names nothing that was made.")
        return made

    def _places(self, *, spot: bool) -> dict[str, list[str]]:
        """Locations with a free machine, by type. Each market must be asked for: unasked, the answer mixes them."""
        found: dict[str, list[str]] = {}
        for row in list_of(self._api.get("instance-availability", isSpot=str(spot).lower()), LABEL):
            with promised(LABEL):
                for kind in row["availabilities"]:
                    found.setdefault(str(kind), []).append(location_of(row))
        return found

    def _key_id(self, public_key: str, name: str) -> str:
        row = known_key(list_of(self._api.get("sshkeys"), LABEL), "key", public_key)
        if row is None:
            return self._made("sshkeys", {"name": name, "key": public_key})
        with promised(LABEL):
            return str(row["id"])
