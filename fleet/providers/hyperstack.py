"""Hyperstack (NexGen Cloud's Infrahub): https://docs.hyperstack.cloud/docs/api-reference/.

Two traps: machines are started, stopped and hibernated by GET, so those are never tried again; and one that is shut off costs its
full price, so to stop means to hibernate here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
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
from fleet.providers.errors import Invalid, NotFound, WrongState
from fleet.providers.http import JSON, JsonApi, Problem, endpoint
from fleet.providers.hyperstack_endings import ENDINGS, SEMANTICS
from fleet.providers.hyperstack_facts import SNAPSHOT, instance_of, offers_of, own_images, prices_of, snapshot_of
from fleet.providers.orders import (
    chosen_image,
    known_key,
    name_with_token,
    no_price_limit,
    order_refusals,
    own_disk,
    plain_name,
    tags_of,
)
from fleet.providers.reading import MAX_PAGES, complete, endless, header_secret, list_of, mapping_of, path_of
from fleet.providers.registry import register
from fleet.providers.rows import Row, number, promised, rows_of

LABEL = "Hyperstack"
PAGE_SIZE = 100
MACHINES = "core/virtual-machines"
# The API's own limit.
NAME_CHARACTERS = 50
HIBERNATED = {"HIBERNATED", "HIBERNATING"}
# What starts a machine in this state; any other runs, or is on its way.
STARTS = {"SHUTOFF": "start", "HIBERNATED": "hibernate-restore"}


@register
class Hyperstack:
    kind: ClassVar[str] = "hyperstack"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="api_key",
            label=gettext_noop("API key"),
            help_text=gettext_noop("keys here have no scopes: it may do what its owner may"),
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
            Capability.BALANCE,
        }
    )
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        key = header_secret(options, "api_key")
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://infrahub-api.nexgencloud.com/v1/"),
            headers={"api_key": key},
            secrets=[key],
            problem=problem,
        )

    def verify(self) -> AccountInfo:
        rows_of(self._api.get(MACHINES, page="1", page_size="1"), "instances", LABEL)
        return AccountInfo()

    def instances(self) -> Iterator[ProviderInstance]:
        rows = list(self._every(MACHINES, "instances"))
        prices = self._prices() if rows else {}
        with promised(LABEL):
            made = [instance_of(row, prices) for row in rows]
        yield from made

    def instance(self, ref: Ref) -> ProviderInstance | None:
        row = self._row(ref)
        if row is None:
            return None
        prices = self._prices()
        with promised(LABEL):
            return instance_of(row, prices)

    def start(self, ref: Ref) -> None:
        action = STARTS.get(self._status(ref))
        if action:
            self._act(ref, action)

    def stop(self, ref: Ref) -> None:
        status = self._status(ref)
        if status in HIBERNATED:
            return
        if status == "SHUTOFF":
            raise WrongState(
                f"It is shut off, which {LABEL} bills in full, and only what runs can hibernate: start it first."
            )
        self._act(ref, "hibernate?retain_ip=true")

    def reboot(self, ref: Ref) -> None:
        self._act(ref, "hard-reboot")

    def terminate(self, ref: Ref) -> None:
        row = self._row(ref)
        if row is None or row.get("status") in {"DELETING", "DELETED"}:
            return
        try:
            self._api.send("DELETE", f"{MACHINES}/{path_of(ref.external_id)}")
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        image = chosen_image(spec.image_id, LABEL)
        own_disk(spec, LABEL)
        no_price_limit(spec, LABEL)
        self._check_market(spec)
        if image.startswith(SNAPSHOT):
            return self._restored(image.removeprefix(SNAPSHOT), spec, token)
        environment = self._environment(spec.region)
        body: dict[str, object] = {
            "name": plain_name(spec.name, limit=NAME_CHARACTERS) or token,
            "environment_name": environment,
            "image_name": image,
            "flavor_name": spec.offer_id,
            "key_name": self._key_name(spec.ssh_public_key, environment, token),
            "count": 1,
            "assign_floating_ip": True,
            "labels": tags_of(spec.labels, token),
        }
        if spec.user_data:
            body["user_data"] = spec.user_data
        with order_refusals():
            answer = checked(self._api.send("POST", MACHINES, json=body))
        with promised(LABEL):
            return Ref(str(rows_of(answer, "instances", LABEL)[0]["id"]), spec.region)

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        groups, prices = rows_of(self._api.get("core/flavors"), "data", LABEL), self._prices()
        with promised(LABEL):
            found = list(offers_of(groups, prices))
        yield from found

    def images(self) -> Iterator[ProviderImage]:
        groups = rows_of(self._api.get("core/images"), "images", LABEL)
        snapshots = list(self._every("core/snapshots", "snapshots"))
        with promised(LABEL):
            found = [*own_images(groups), *(snapshot_of(row) for row in snapshots)]
        yield from found

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        body = {"name": name, "description": f"of machine {ref.external_id}"}
        answer = checked(self._api.send("POST", f"{MACHINES}/{path_of(ref.external_id, 'snapshots')}", json=body))
        row = mapping_of(answer, "snapshot", LABEL)
        with promised(LABEL):
            made = snapshot_of(row)
        return ProviderImage(made.external_id, made.name, made.created_at, ref.region, ImageState.PENDING)

    def balance(self) -> Money:
        data = mapping_of(self._api.get("billing/user-credit/credit"), "data", LABEL)
        with promised(LABEL):
            return Money(number(data["credit"]) or Decimal(0), "USD")

    def _row(self, ref: Ref) -> Row | None:
        try:
            return mapping_of(self._api.get(f"{MACHINES}/{path_of(ref.external_id)}"), "instance", LABEL)
        except NotFound:
            return None

    def _status(self, ref: Ref) -> str:
        row = self._row(ref)
        if row is None:
            raise NotFound(f"{LABEL} has no machine {ref.external_id}.")
        return str(row.get("status"))

    def _act(self, ref: Ref, action: str) -> None:
        """By GET, as this API has it, and as a write: sent once, whatever becomes of the answer."""
        checked(self._api.send("GET", f"{MACHINES}/{path_of(ref.external_id)}/{action}"))

    def _restored(self, snapshot_id: str, spec: CreateSpec, token: str) -> Ref:
        """A snapshot comes back as the machine that it was made of: its flavor, key and environment."""
        path = f"core/snapshots/{path_of(snapshot_id)}"
        flavor = mapping_of(self._api.get(path), "snapshot", LABEL).get("vm_flavor")
        if flavor and flavor != spec.offer_id:
            raise Invalid(f"{LABEL} restores this snapshot on the flavor {flavor} and no other.")
        if spec.user_data:
            raise Invalid(f"{LABEL} runs no script on a machine that it restores.")
        body = {"new_vm_name": name_with_token(spec.name, token, limit=NAME_CHARACTERS)}
        with order_refusals():
            answer = checked(self._api.send("POST", f"{path}/restore", json=body))
        with promised(LABEL):
            return Ref(str(mapping_of(answer, "instance", LABEL)["id"]), spec.region)

    def _check_market(self, spec: CreateSpec) -> None:
        """A flavor is sold on one market. Raises Invalid where another was asked for."""
        groups = rows_of(self._api.get("core/flavors"), "data", LABEL)
        with promised(LABEL):
            sold = {offer.external_id: offer.market for offer in offers_of(groups, {})}
        if (market := sold.get(spec.offer_id, Market.ON_DEMAND)) is not spec.market:
            words = "on spot" if market is Market.SPOT else "on demand"
            raise Invalid(f"{LABEL} rents {spec.offer_id} {words} only.")

    def _prices(self) -> dict[str, Decimal]:
        rows = list_of(self._api.get("pricebook"), LABEL)
        with promised(LABEL):
            return prices_of(rows)

    def _environment(self, region: str) -> str:
        """Machines are made in an environment, which lies in one region."""
        rows = list(self._every("core/environments", "environments"))
        with promised(LABEL):
            found = next((str(row["name"]) for row in rows if row.get("region") == region), "")
        if not found:
            raise Invalid(f"The account has no environment in {region or 'a region'}. Make one at {LABEL} first.")
        return found

    def _key_name(self, public_key: str, environment: str, token: str) -> str:
        if not public_key:
            raise Invalid(f"{LABEL} makes no machine without an SSH key.")
        rows = [
            row
            for row in self._every("core/keypairs", "keypairs")
            if (row.get("environment") or {}).get("name") == environment
        ]
        known = known_key(rows, "public_key", public_key)
        if known is not None:
            return str(known.get("name"))
        body = {"name": token, "environment_name": environment, "public_key": public_key}
        checked(self._api.send("POST", "core/keypairs", json=body))
        return token

    def _every(self, path: str, key: str) -> Iterator[Row]:
        """All rows of all pages: as many as the first page counts."""
        seen = 0
        for page in range(1, MAX_PAGES + 1):
            answer = self._api.get(path, page=str(page), page_size=str(PAGE_SIZE))
            rows, count = rows_of(answer, key, LABEL), answer.get("count")
            yield from rows
            seen += len(rows)
            if not rows or not isinstance(count, int) or seen >= count:
                return complete(seen, count, LABEL)
        raise endless(LABEL, key)


def checked(answer: JSON) -> Any:
    """Some refusals come with 200 and {"status": false}."""
    if isinstance(answer, dict) and answer.get("status") is False:
        raise Invalid(str(answer.get("message") or f"{LABEL} refuses without a word."))
    return answer


def problem(body: Row) -> Problem:
    """{"status": false, "error_reason": "not_found", "message": "…"}"""
    return str(body["error_reason"]), str(body["message"])
