"""Google Compute Engine: every zone of a project, all pages. A list from which a zone is missing is no list.

The endpoint can only be changed by the installation's operator: GOOGLE_ENDPOINT_URL, which then answers for tokens too.
"""

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
    Notice,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.errors import Invalid, NotFound, ScopeMissing
from fleet.providers.google_api import LABEL, Compute, key_of
from fleet.providers.google_endings import ENDINGS, SEMANTICS
from fleet.providers.google_facts import image_of, instance_of, maintenance, tail
from fleet.providers.google_orders import launch, offers_of
from fleet.providers.orders import plain_name
from fleet.providers.reading import path_of
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised
from fleet.providers.typed import currency, price_lines


@register
class Google:
    kind: ClassVar[str] = "google"
    label: ClassVar[str] = "Google Compute Engine"
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="service_account",
            label=gettext_noop("Service account key"),
            help_text=gettext_noop(
                "the whole JSON file, of an account with the role Compute Viewer, or Compute Instance Admin to act; its project is read"
            ),
            secret=True,
            multiline=True,
        ),
        Field(
            name="prices",
            label=gettext_noop("Prices"),
            help_text=gettext_noop(
                "one a line: type and price per hour, as in “a2-highgpu-1g 3.67”; “europe-west4/a2-highgpu-1g 3.75” for one region, "
                "“spot a2-highgpu-1g 1.83” for spot. Google does not tell them; a type without one counts as unknown."
            ),
            required=False,
            multiline=True,
        ),
        Field(
            name="currency",
            label=gettext_noop("Currency"),
            help_text=gettext_noop("of these prices"),
            default="USD",
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.BALANCE,
        Capability.METRICS,
        Capability.COSTS,
    }
    # Google keeps the id of a request for an hour, and no two machines of a zone have the same name, in which the token stands.
    create_is_idempotent: ClassVar[bool] = True
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        text = options["service_account"]
        key = key_of(text)
        self._currency = currency(options["currency"])
        self._prices = price_lines(options["prices"], self._currency)
        self._compute = Compute(text, key)

    def verify(self) -> AccountInfo:
        self._compute.get("aggregated/instances", maxResults="1")
        return AccountInfo(self._compute.project, self._currency)

    def instances(self) -> Iterator[ProviderInstance]:
        with promised(LABEL):
            machines = self._told(list(self._compute.rows_everywhere("instances")))
        yield from machines

    def instance(self, ref: Ref) -> ProviderInstance | None:
        row = self._row(ref)
        if row is None:
            return None
        with promised(LABEL):
            return self._told([row])[0]

    def start(self, ref: Ref) -> None:
        row = self._row(ref)
        if row is None:
            raise NotFound(f"{LABEL} has no such machine.")
        self._act(ref, "resume" if row["status"] == "SUSPENDED" else "start")

    def stop(self, ref: Ref) -> None:
        """Google stops no machine with local SSDs unless it is told that what they hold may go."""
        self._act(ref, "stop?discardLocalSsd=true")

    def terminate(self, ref: Ref) -> None:
        try:
            self._compute.send("DELETE", place_of(ref))
        except NotFound:
            return

    def reboot(self, ref: Ref) -> None:
        """Google knows the hard way alone."""
        self._act(ref, "reset")

    def create(self, spec: CreateSpec, token: str) -> Ref:
        return launch(self._compute, spec, token)

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        with promised(LABEL):
            found = list(offers_of(self._compute, query, self._prices))
        yield from found

    def images(self) -> Iterator[ProviderImage]:
        with promised(LABEL):
            found = [image_of(row) for page in self._compute.pages("global/images") for row in page.get("items", ())]
        yield from found

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        """Of the boot disk, while the machine runs on: as a power cut would leave it."""
        row = self._row(ref)
        if row is None:
            raise NotFound(f"{LABEL} has no such machine.")
        image = plain_name(name)
        source = next((disk.get("source") for disk in row.get("disks", ()) if disk.get("boot")), None)
        if not image or not image[0].isalpha() or source is None:
            raise Invalid("An image's name begins with a letter, and its machine has a boot disk.")
        self._compute.send("POST", "global/images?forceCreate=true", {"name": image, "sourceDisk": source})
        return ProviderImage(image, image, state=ImageState.PENDING)

    def notices(self) -> Iterator[Notice]:
        with promised(LABEL):
            found = [notice for row in self._compute.rows_everywhere("instances") for notice in maintenance(row)]
        yield from found

    def _row(self, ref: Ref) -> Row | None:
        try:
            return self._compute.get(place_of(ref))
        except NotFound:
            return None

    def _act(self, ref: Ref, act: str) -> None:
        self._compute.send("POST", f"{place_of(ref)}/{act}")

    def _told(self, rows: list[Row]) -> list[ProviderInstance]:
        types = {(tail(row["zone"]), tail(row["machineType"])) for row in rows}
        sizes = {pair: size for pair in sorted(types) if (size := self._size(*pair))}
        return [instance_of(row, sizes, self._prices) for row in rows]

    def _size(self, zone: str, kind: str) -> Row | None:
        """None for a type that is retired, or that the key may not read: its facts stay unknown."""
        try:
            return self._compute.get(path_of("zones", zone, "machineTypes", kind))
        except (NotFound, ScopeMissing):
            return None


def place_of(ref: Ref) -> str:
    return path_of("zones", ref.region, "instances", ref.external_id)
