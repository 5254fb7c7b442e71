"""Vultr's cloud GPU machines and bare metal: https://www.vultr.com/api/ (v2).

Two lists, one kind of id: a machine that the one does not know is looked for in the other. Starting what runs would restart it here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    InstanceState,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import NotFound, WrongState
from fleet.providers.http import JsonApi, Problem, endpoint
from fleet.providers.orders import chosen_image, known_key, no_price_limit, on_demand, order_refusals, own_disk, tags_of
from fleet.providers.reading import MAX_PAGES, complete, endless, header_secret, mapping_of, path_of
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised, rows_of
from fleet.providers.vultr_endings import ENDINGS, SEMANTICS
from fleet.providers.vultr_facts import image_of, instance_of, offers_of

LABEL = "Vultr"
PAGE_SIZE = 500
# Path of a list, key of its rows, key of one row, path and key of its plans.
HOMES = (
    ("instances", "instances", "instance", "plans", "plans"),
    ("bare-metals", "bare_metals", "bare_metal", "plans-metal", "plans_metal"),
)
UNDER_WAY = {InstanceState.RUNNING, InstanceState.STARTING, InstanceState.PROVISIONING}


@register
class Vultr:
    kind: ClassVar[str] = "vultr"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="api_key",
            label=gettext_noop("API key"),
            help_text=gettext_noop("allow this server's address under Access Control, or Vultr refuses it"),
            secret=True,
        ),
    )
    # No STOP: a halted machine costs what it costs running. No BALANCE: the bill comes afterwards.
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.START,
            Capability.TERMINATE,
            Capability.REBOOT,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.IMAGES,
            Capability.SAVE_IMAGE,
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
            base_url=endpoint(self.kind, "https://api.vultr.com/v2/"),
            headers={"Authorization": f"Bearer {key}"},
            secrets=[key],
            problem=problem,
        )

    def verify(self) -> AccountInfo:
        account = mapping_of(self._api.get("account"), "account", LABEL)
        return AccountInfo(str(account.get("email") or account.get("name") or ""))

    def instances(self) -> Iterator[ProviderInstance]:
        for path, key, _, plans_path, plans_key in HOMES:
            rows = list(self._every(path, key))
            plans = self._plans(plans_path, plans_key) if rows else {}
            with promised(LABEL):
                made = [instance_of(row, plans) for row in rows]
            yield from made

    def instance(self, ref: Ref) -> ProviderInstance | None:
        found = self._find(ref)
        if found is None:
            return None
        home, row = found
        plans = self._plans(home[3], home[4])
        with promised(LABEL):
            return instance_of(row, plans)

    def start(self, ref: Ref) -> None:
        path, machine = self._machine(ref)
        if machine.state not in UNDER_WAY:
            self._api.send("POST", path_of(path, ref.external_id, "start"))

    def reboot(self, ref: Ref) -> None:
        path, _ = self._machine(ref)
        self._api.send("POST", path_of(path, ref.external_id, "reboot"))

    def terminate(self, ref: Ref) -> None:
        found = self._find(ref)
        if found is None:
            return
        try:
            self._api.send("DELETE", path_of(found[0][0], ref.external_id))
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        own_disk(spec, LABEL)
        no_price_limit(spec, LABEL)
        on_demand(spec, LABEL)
        path, _, one, _, _ = HOMES[1 if spec.offer_id.startswith("vbm-") else 0]
        body: dict[str, object] = {
            "region": spec.region,
            "plan": spec.offer_id,
            "label": spec.name or token,
            "tags": tags_of(spec.labels, token),
            "activation_email": False,
            **image_choice(chosen_image(spec.image_id, LABEL)),
        }
        if spec.ssh_public_key:
            body["sshkey_id"] = [self._key_id(spec.ssh_public_key, token)]
        if spec.user_data:
            body["user_data"] = base64.b64encode(spec.user_data.encode()).decode()
        with order_refusals():
            answer = self._api.send("POST", path, json=body)
        row = mapping_of(answer, one, LABEL)
        with promised(LABEL):
            return Ref(str(row["id"]), str(row.get("region") or spec.region))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for _, _, _, path, key in HOMES:
            for plan in self._every(path, key):
                with promised(LABEL):
                    made = list(offers_of(plan))
                yield from made

    def images(self) -> Iterator[ProviderImage]:
        for row in self._every("snapshots", "snapshots"):
            with promised(LABEL):
                made = image_of(row)
            yield made

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        path, _ = self._machine(ref)
        if path != HOMES[0][0]:
            raise WrongState(f"{LABEL} makes no image of bare metal.")
        answer = self._api.send("POST", "snapshots", json={"instance_id": ref.external_id, "description": name})
        with promised(LABEL):
            return image_of(mapping_of(answer, "snapshot", LABEL))

    def _find(self, ref: Ref) -> tuple[tuple[str, str, str, str, str], Row] | None:
        for home in HOMES:
            try:
                return home, mapping_of(self._api.get(path_of(home[0], ref.external_id)), home[2], LABEL)
            except NotFound:
                continue
        return None

    def _machine(self, ref: Ref) -> tuple[str, ProviderInstance]:
        found = self._find(ref)
        if found is None:
            raise NotFound(f"{LABEL} has no machine {ref.external_id}.")
        with promised(LABEL):
            return found[0][0], instance_of(found[1], {})

    def _plans(self, path: str, key: str) -> dict[str, Row]:
        return {str(plan.get("id")): plan for plan in self._every(path, key)}

    def _key_id(self, public_key: str, name: str) -> str:
        row = known_key(self._every("ssh-keys", "ssh_keys"), "ssh_key", public_key)
        if row is None:
            answer = self._api.send("POST", "ssh-keys", json={"name": name, "ssh_key": public_key})
            row = mapping_of(answer, "ssh_key", LABEL)
        with promised(LABEL):
            return str(row["id"])

    def _every(self, path: str, key: str) -> Iterator[Row]:
        """All rows of all pages; the cursor of the next one stands in meta.links.next, empty on the last."""
        cursor, seen = "", 0
        for _ in range(MAX_PAGES):
            query = {"cursor": cursor} if cursor else {}
            answer = self._api.get(path, per_page=str(PAGE_SIZE), **query)
            rows, meta = rows_of(answer, key, LABEL), answer.get("meta") or {}
            yield from rows
            seen += len(rows)
            following = str((meta.get("links") or {}).get("next") or "")
            if not following:
                return complete(seen, meta.get("total"), LABEL)
            if following == cursor:
                break
            cursor = following
        raise endless(LABEL, key)


def image_choice(image_id: str) -> dict[str, object]:
    """A number is one of Vultr's systems, a UUID a snapshot of the account, a word an application of the marketplace."""
    if image_id.isdecimal():
        return {"os_id": int(image_id)}
    return {"snapshot_id": image_id} if len(image_id) == 36 and image_id.count("-") == 4 else {"image_id": image_id}


def problem(body: Row) -> Problem:
    """{"error": "…", "status": 400}: words and no code."""
    return str(body["status"]), str(body["error"])
