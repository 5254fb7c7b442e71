"""AutoDL's container instances Pro: https://www.autodl.com/docs/instance_pro_api. Its other instances have no API.

Reads that change nothing come as POST, and GET carries a body. A refusal is HTTP 200 (autodl_answers.py). What can be rented is told
to enterprises alone: there are no OFFERS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import ClassVar

from fleet.providers.autodl_answers import LABEL, data_of
from fleet.providers.autodl_endings import ENDINGS, SEMANTICS
from fleet.providers.autodl_facts import image_of, instance_of, order_of, yuan
from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
    Money,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import (
    Invalid,
    NotFound,
    PartialCreate,
    ProviderError,
    RateLimited,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JSON, JsonApi, endpoint
from fleet.providers.reading import MAX_PAGES, await_answer, complete, endless, header_secret
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised, rows_of

PRO = "instance/pro"
PAGE_SIZE = 100
# Powering off takes seconds; releasing must wait for it.
POLLS, POLL_SECONDS, COME_BACK_SECONDS = 4, 5.0, 20.0
ON = {"running", "starting", "creating", "created"}
OFF = {"shutdown", "shutting_down"}


@register
class AutoDL:
    kind: ClassVar[str] = "autodl"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="token",
            label=gettext_noop("Developer token"),
            help_text=gettext_noop(
                "from Account › Settings; only instances Pro are seen, AutoDL has no API for others"
            ),
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
            Capability.CREATE,
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
        token = header_secret(options, "token")
        self._secrets = [token]
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://api.autodl.com/api/v1/dev/"),
            # Bare: this API knows no "Bearer".
            headers={"Authorization": token},
            secrets=self._secrets,
            problem=lambda body: (str(body["code"]), str(body["msg"])),
        )

    def verify(self) -> AccountInfo:
        rows_of(self._post(f"{PRO}/list", page_index=1, page_size=1), "list", LABEL)
        return AccountInfo(currency="CNY")

    def instances(self) -> Iterator[ProviderInstance]:
        for row in self._every(f"{PRO}/list"):
            yield self._told(row)

    def instance(self, ref: Ref) -> ProviderInstance | None:
        row = self._row(ref)
        return None if row is None else self._told(row)

    def start(self, ref: Ref) -> None:
        if self._status(ref) not in ON:
            self._post(f"{PRO}/power_on", instance_uuid=ref.external_id, payload="gpu")

    def stop(self, ref: Ref) -> None:
        if self._status(ref) not in OFF:
            self._post(f"{PRO}/power_off", instance_uuid=ref.external_id)

    def terminate(self, ref: Ref) -> None:
        """Only what is off can be released. Raises RateLimited where it is not off yet: to be asked again soon."""
        row = self._row(ref)
        if row is None:
            return
        try:
            if row.get("status") != "shutdown":
                self._power_off(ref)
            self._post(f"{PRO}/release", instance_uuid=ref.external_id)
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        made = self._post(f"{PRO}/create", **order_of(spec, token))
        if not isinstance(made, str) or not made:
            raise Unavailable(f"{LABEL} took the order and named no machine.")
        return self._placed(Ref(made, spec.region))

    def images(self) -> Iterator[ProviderImage]:
        for row in self._every(f"{PRO}/image/private/list"):
            with promised(LABEL):
                made = image_of(row)
            yield made

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        made = self._post(f"{PRO}/image/save", instance_uuid=ref.external_id, image_name=name)
        with promised(LABEL):
            return ProviderImage(str(made["image_uuid"]), name, region=ref.region, state=ImageState.PENDING)

    def balance(self) -> Money:
        """What can be spent: without what is set aside for orders that run."""
        purse = self._post("wallet/balance")
        with promised(LABEL):
            assets, blocked = yuan(purse["assets"]), yuan(purse.get("blocked_asset"))
            return Money((assets or Decimal(0)) - (blocked or Decimal(0)), "CNY")

    def _placed(self, ref: Ref) -> Ref:
        """Where AutoDL put what it made: an order may leave the place open. Raises PartialCreate where that cannot be read."""
        try:
            row = self._row(ref)
        except ProviderError as unread:
            raise PartialCreate(unread.detail, ref) from None
        return ref if row is None else Ref(ref.external_id, str(row.get("region_sign") or ref.region))

    def _told(self, row: Row) -> ProviderInstance:
        with promised(LABEL):
            return instance_of(row, self._snapshot(str(row["uuid"])))

    def _snapshot(self, uuid: str) -> Row:
        """{} where a machine has none: just made, just gone, or in a state without one."""
        try:
            snapshot = self._get(f"{PRO}/snapshot", instance_uuid=uuid)
        except (NotFound, WrongState, Invalid):
            return {}
        if not isinstance(snapshot, dict):
            raise Unavailable(f"{LABEL}'s answer has no snapshot.")
        return snapshot

    def _row(self, ref: Ref) -> Row | None:
        return next((row for row in self._every(f"{PRO}/list") if row.get("uuid") == ref.external_id), None)

    def _status(self, ref: Ref) -> str:
        return str(self._get(f"{PRO}/status", instance_uuid=ref.external_id))

    def _power_off(self, ref: Ref) -> None:
        self.stop(ref)
        off = await_answer(lambda: self._status(ref) == "shutdown" or None, tries=POLLS, seconds=POLL_SECONDS)
        if not off:
            raise RateLimited(f"{LABEL} is still powering it off, and releases only what is off.", COME_BACK_SECONDS)

    def _get(self, path: str, **body: object) -> JSON:
        return data_of(self._api.get(path, json=body), self._secrets)

    def _post(self, path: str, **body: object) -> JSON:
        return data_of(self._api.send("POST", path, json=body), self._secrets)

    def _every(self, path: str) -> Iterator[Row]:
        """All rows of all pages, as many as each page counts in all."""
        seen = 0
        for index in range(1, MAX_PAGES + 1):
            page = self._post(path, page_index=index, page_size=PAGE_SIZE)
            rows, total = rows_of(page, "list", LABEL), page.get("result_total")
            yield from rows
            seen += len(rows)
            if not rows or not isinstance(total, int) or seen >= total:
                return complete(seen, total, LABEL)
        raise endless(LABEL, "machines")
