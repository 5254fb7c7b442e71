"""Lambda Cloud. Machines run until they are ended: there is no stop, no snapshot, no measurement, and no time of creation.

One call a second for a key, one launch in twelve; errors are told apart by their code, never by their words.
"""

from __future__ import annotations

import hashlib
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
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JSON, JsonApi, Problem, endpoint
from fleet.providers.lambdacloud_endings import ENDINGS, SEMANTICS
from fleet.providers.lambdacloud_rows import LABEL, image_of, instance_of, offers_of, order_of
from fleet.providers.orders import known_key
from fleet.providers.pace import Pace
from fleet.providers.reading import header_secret, path_of
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised, rows_of

PACE = Pace(1.0)
KINDS: Mapping[str, type[ProviderError]] = {
    "global/invalid-api-key": AuthFailed,
    "global/forbidden": ScopeMissing,
    "global/account-inactive": QuotaOrFunds,
    "global/invalid-address": QuotaOrFunds,
    "global/quota-exceeded": QuotaOrFunds,
    "global/object-does-not-exist": NotFound,
    "global/conflict": WrongState,
    # What ending a machine that is being ended already was answered with.
    "global/unknown": WrongState,
    "instance-operations/launch/insufficient-capacity": NoCapacity,
    "provider/internal-unavailable": Unavailable,
}
ENDED = {InstanceState.TERMINATING, InstanceState.TERMINATED}


@register
class Lambda:
    kind: ClassVar[str] = "lambda"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="api_key",
            label=gettext_noop("API key"),
            help_text=gettext_noop("a key may do everything: Lambda knows none that only reads"),
            secret=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.TERMINATE,
            Capability.REBOOT,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.IMAGES,
        }
    )
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        key = header_secret(options, "api_key")
        self._key = key
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://cloud.lambda.ai"),
            headers={"Authorization": f"Bearer {key}"},
            secrets=[key],
            problem=problem,
            kinds=KINDS,
        )

    def verify(self) -> AccountInfo:
        """Lambda names neither the account nor what a key may do."""
        self._list("instances")
        return AccountInfo()

    def instances(self) -> Iterator[ProviderInstance]:
        rows = self._list("instances")
        with promised(LABEL):
            machines = [instance_of(row) for row in rows]
        yield from machines

    def instance(self, ref: Ref) -> ProviderInstance | None:
        try:
            answer = self._get(f"instances/{path_of(ref.external_id)}")
        except NotFound:
            return None
        with promised(LABEL):
            return instance_of(answer["data"])

    def reboot(self, ref: Ref) -> None:
        self._send("instance-operations/restart", {"instance_ids": [ref.external_id]})

    def terminate(self, ref: Ref) -> None:
        try:
            self._send("instance-operations/terminate", {"instance_ids": [ref.external_id]})
        except NotFound:
            return
        except (WrongState, Invalid):
            machine = self.instance(ref)
            if machine is not None and machine.state not in ENDED:
                raise

    def create(self, spec: CreateSpec, token: str) -> Ref:
        """The token stands in the name and in a tag."""
        order = order_of(spec, token)
        order["ssh_key_names"] = [self._key_name(spec.ssh_public_key)]
        answer = self._send("instance-operations/launch", order)
        with promised(LABEL):
            return Ref(str(answer["data"]["instance_ids"][0]))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        answer = self._get("instance-types")
        with promised(LABEL):
            found = [offer for row in answer["data"].values() for offer in offers_of(row)]
        yield from found

    def images(self) -> Iterator[ProviderImage]:
        """Lambda's own: machines cannot be saved."""
        rows = self._list("images")
        with promised(LABEL):
            found = [image_of(row) for row in rows]
        yield from found

    def _key_name(self, public_key: str) -> str:
        """What the account calls an SSH key; a new one is stored there first. Exactly one goes with a launch.

        Raises Invalid when there is none at all: nobody could get into the machine.
        """
        rows = self._list("ssh-keys")
        known = known_key(rows, "public_key", public_key) if public_key else next(iter(rows), None)
        if known is not None:
            return str(known.get("name"))
        if not public_key:
            raise Invalid(f"{LABEL} needs an SSH key: add one to the order or to the account there.")
        name = f"rackrent-{hashlib.sha256(public_key.encode()).hexdigest()[:12]}"
        self._send("ssh-keys", {"name": name, "public_key": public_key})
        return name

    def _list(self, name: str) -> list[Row]:
        return rows_of(self._get(name), "data", LABEL)

    def _get(self, path: str) -> JSON:
        PACE.wait(self._key)
        return self._api.get(f"/api/v1/{path}")

    def _send(self, path: str, body: JSON) -> JSON:
        PACE.wait(self._key)
        return self._api.send("POST", f"/api/v1/{path}", json=body)


def problem(body: JSON) -> Problem:
    error = body["error"]
    return str(error["code"]), " ".join(str(error[name]) for name in ("message", "suggestion") if error.get(name))
