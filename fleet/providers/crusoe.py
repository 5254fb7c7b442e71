"""Crusoe Cloud, one project: https://docs.crusoecloud.com/api/. Each write answers with an operation, which can fail after it was accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.crusoe_auth import Signature
from fleet.providers.crusoe_endings import ENDINGS, SEMANTICS
from fleet.providers.crusoe_facts import image_of, instance_of, offers_of, system_disk, word_of
from fleet.providers.errors import (
    Invalid,
    NoCapacity,
    NotFound,
    PartialCreate,
    ProviderError,
    QuotaOrFunds,
    Unavailable,
)
from fleet.providers.http import DETAIL_CHARS, JsonApi, endpoint
from fleet.providers.orders import chosen_image, name_with_token, no_price_limit, on_demand, order_refusals, own_disk
from fleet.providers.reading import (
    MAX_PAGES,
    await_answer,
    endless,
    header_secret,
    mapping_of,
    path_of,
    required,
)
from fleet.providers.redact import cut
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised, rows_of
from fleet.providers.typed import price_lines

LABEL = "Crusoe"
PAGE_SIZE = 100
STOPPED, GONE = {"SHUTOFF", "STOPPING"}, {"DELETING", "DELETED"}
# An order for what is not there fails within seconds; whatever takes longer is shown by the machine.
POLLS, POLL_SECONDS = 5, 2.0
FAILURES: Mapping[str, type[ProviderError]] = {
    "out_of_stock": NoCapacity,
    "quota_exceeded": QuotaOrFunds,
    "not_found": NotFound,
}


@register
class Crusoe:
    kind: ClassVar[str] = "crusoe"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="access_key", label=gettext_noop("Access key id")),
        Field(name="secret_key", label=gettext_noop("Secret access key"), secret=True),
        Field(
            name="project_id",
            label=gettext_noop("Project id"),
            help_text=gettext_noop("machines of other projects are not seen"),
        ),
        Field(
            name="prices",
            label=gettext_noop("Prices"),
            help_text=gettext_noop(
                "one a line: type and price per hour of the whole machine in USD, as in “l40s-48gb.1x 1.00”, “spot l40s-48gb.1x 0.50” "
                "for spot. Crusoe does not tell them; a type without one counts as unknown."
            ),
            required=False,
            multiline=True,
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
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        access_key, secret_key = header_secret(options, "access_key"), required(options, "secret_key")
        self._project_id = required(options, "project_id")
        self._prices = price_lines(options["prices"], "USD")
        self._project = f"projects/{path_of(self._project_id)}"
        self._machines = f"{self._project}/compute/vms/instances"
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://api.crusoecloud.com/v1/"),
            auth=Signature(access_key, secret_key),
            secrets=[secret_key],
        )

    def verify(self) -> AccountInfo:
        rows_of(self._api.get(self._machines, limit="1"), "items", LABEL)
        return AccountInfo(self._project_id)

    def instances(self) -> Iterator[ProviderInstance]:
        rows = list(self._every(self._machines))
        types = self._types() if rows else {}
        with promised(LABEL):
            made = [instance_of(row, types, self._prices) for row in rows]
        yield from made

    def instance(self, ref: Ref) -> ProviderInstance | None:
        row = self._row(ref)
        if row is None:
            return None
        types = self._types()
        with promised(LABEL):
            return instance_of(row, types, self._prices)

    def start(self, ref: Ref) -> None:
        if word_of(self._machine(ref)) == "SHUTOFF":
            self._act(ref, "START")

    def stop(self, ref: Ref) -> None:
        if word_of(self._machine(ref)) not in STOPPED:
            self._act(ref, "STOP")

    def reboot(self, ref: Ref) -> None:
        self._act(ref, "RESET")

    def terminate(self, ref: Ref) -> None:
        row = self._row(ref)
        if row is None or word_of(row) in GONE:
            return
        try:
            self._accepted(self._api.send("DELETE", self._path(ref)))
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        """The token stands in the name: machines have no labels here, so those of the order are kept by Rackrent alone."""
        own_disk(spec, LABEL)
        no_price_limit(spec, LABEL)
        on_demand(spec, LABEL)
        if not spec.ssh_public_key:
            raise Invalid(f"{LABEL} makes no machine without an SSH key.")
        image = chosen_image(spec.image_id, LABEL)
        body: dict[str, object] = {
            "name": name_with_token(spec.name, token),
            "type": spec.offer_id,
            "location": spec.region,
            "ssh_public_key": spec.ssh_public_key,
            "custom_image" if is_custom(image) else "image": image,
        }
        if spec.user_data:
            body["startup_script"] = spec.user_data
        with order_refusals():
            answer = self._api.send("POST", self._machines, json=body)
        operation = mapping_of(answer, "operation", LABEL)
        with promised(LABEL):
            ref = Ref(str(operation["metadata"]["id"]), spec.region)
        self._look_after(operation, ref)
        return ref

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        types, capacities = self._types(), rows_of(self._api.get("capacities"), "items", LABEL)
        with promised(LABEL):
            found = list(offers_of(types, capacities, self._prices))
        yield from found

    def images(self) -> Iterator[ProviderImage]:
        rows = rows_of(self._api.get(f"{self._project}/compute/custom-images"), "items", LABEL)
        with promised(LABEL):
            found = [image_of(row) for row in rows]
        yield from found

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        """Of the system disk. The answer names the operation; images() finds the image by its name."""
        row = self._machine(ref)
        with promised(LABEL):
            disk_id = system_disk(row)
        answer = self._api.send(
            "POST", f"{self._project}/compute/custom-images", json={"DiskID": disk_id, "name": name}
        )
        self._accepted(answer)
        return ProviderImage(external_id="", name=name, region=ref.region, state=ImageState.PENDING)

    def _path(self, ref: Ref) -> str:
        return f"{self._machines}/{path_of(ref.external_id)}"

    def _row(self, ref: Ref) -> Row | None:
        try:
            row = self._api.get(self._path(ref))
        except NotFound:
            return None
        if not isinstance(row, dict) or not row.get("id"):
            raise Unavailable(f"{LABEL}'s answer is no machine.")
        return row

    def _machine(self, ref: Ref) -> Row:
        row = self._row(ref)
        if row is None:
            raise NotFound(f"{LABEL} has no machine {ref.external_id}.")
        return row

    def _act(self, ref: Ref, action: str) -> None:
        self._accepted(self._api.send("PATCH", self._path(ref), json={"action": action}))

    def _accepted(self, answer: object) -> None:
        operation = mapping_of(answer, "operation", LABEL)
        if operation.get("state") == "FAILED":
            raise failure(operation)

    def _look_after(self, operation: Row, ref: Ref) -> None:
        """Waits some seconds for an order to fail. Raises what it failed with, PartialCreate where the machine is there all the same."""
        path = f"{self._machines}/operations/{path_of(operation.get('operation_id'))}"

        def ended() -> Row | None:
            row = self._api.get(path)
            return row if isinstance(row, dict) and row.get("state") != "IN_PROGRESS" else None

        try:
            last = await_answer(ended, tries=POLLS, seconds=POLL_SECONDS)
            failed = last is not None and last.get("state") == "FAILED"
            left = self._row(ref) if failed else None
        except ProviderError as unread:
            # The order stands: only reading failed, and a machine may be there.
            raise PartialCreate(unread.detail, ref) from None
        if last is not None and failed:
            error = failure(last)
            raise error if left is None else PartialCreate(error.detail, ref)

    def _types(self) -> dict[str, Row]:
        rows = rows_of(self._api.get(f"{self._project}/compute/vms/types"), "items", LABEL)
        return {str(row.get("product_name")): row for row in rows}

    def _every(self, path: str) -> Iterator[Row]:
        """All rows of all pages."""
        token = ""
        for _ in range(MAX_PAGES):
            query = {"next_token": token} if token else {}
            answer = self._api.get(path, limit=str(PAGE_SIZE), **query)
            yield from rows_of(answer, "items", LABEL)
            following = str(answer.get("next_page_token") or "")
            if not following:
                return
            if following == token:
                break
            token = following
        raise endless(LABEL, "machines")


def failure(operation: Row) -> ProviderError:
    result = operation.get("result")
    told = result if isinstance(result, dict) else {}
    code, message = str(told.get("code") or ""), str(told.get("message") or "")
    detail = cut(message or code, DETAIL_CHARS) or f"{LABEL}'s operation failed without a word."
    return FAILURES.get(code, Unavailable)(detail)


def is_custom(image: str) -> bool:
    """Custom images go by their UUID, Crusoe's own by name and tag."""
    return len(image) == 36 and image.count("-") == 4
