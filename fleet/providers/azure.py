"""Azure virtual machines of one subscription, all pages.

The endpoint can only be changed by the installation's operator: AZURE_ENDPOINT_URL, as https://management.chinacloudapi.cn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from fleet.providers.azure_api import LABEL, NETWORK_VERSION, Arm
from fleet.providers.azure_endings import ENDINGS, SEMANTICS
from fleet.providers.azure_facts import Facts, addresses_of, image_of, instance_of, maintenance
from fleet.providers.azure_orders import launch, offers_of
from fleet.providers.base import (
    AccountInfo,
    Capability,
    CreateSpec,
    Ending,
    Field,
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
from fleet.providers.reading import path_of, required
from fleet.providers.registry import register
from fleet.providers.rows import Row, promised
from fleet.providers.typed import currency, networks, price_lines, unique_id

MACHINES = "providers/Microsoft.Compute/virtualMachines"


@register
class Azure:
    kind: ClassVar[str] = "azure"
    label: ClassVar[str] = "Microsoft Azure"
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="tenant_id", label=gettext_noop("Directory (tenant) id")),
        Field(name="client_id", label=gettext_noop("Application (client) id")),
        Field(
            name="client_secret",
            label=gettext_noop("Client secret"),
            help_text=gettext_noop(
                "of an app registration with the role Reader, or Virtual Machine Contributor to act"
            ),
            secret=True,
        ),
        Field(name="subscription_id", label=gettext_noop("Subscription id")),
        Field(
            name="network",
            label=gettext_noop("Where to rent"),
            help_text=gettext_noop(
                "one location a line with resource group and subnet, as in “eastus gpu-lab /subscriptions/…/subnets/default”; "
                "only for offers and to rent"
            ),
            required=False,
            multiline=True,
        ),
        Field(
            name="prices",
            label=gettext_noop("Prices"),
            help_text=gettext_noop(
                "one a line: size and price per hour, as in “Standard_NC24ads_A100_v4 3.67”; “eastus/…” for one location, “spot …” "
                "for spot. The API does not tell them; a size without one counts as unknown."
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
    # An image of a machine that goes on to run cannot be made: Azure wants it generalized, after which it never starts again.
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.BALANCE,
        Capability.METRICS,
        Capability.SAVE_IMAGE,
        Capability.COSTS,
    }
    # The token stands in the name, and an order is for a name that is not taken.
    create_is_idempotent: ClassVar[bool] = True
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        tenant, client, self._subscription = (
            unique_id(name, required(options, name)) for name in ("tenant_id", "client_id", "subscription_id")
        )
        self._arm = Arm(tenant, client, required(options, "client_secret"), self._subscription)
        self._networks = networks(options["network"])
        self._currency = currency(options["currency"])
        self._prices = price_lines(options["prices"], self._currency)

    def verify(self) -> AccountInfo:
        with promised(LABEL):
            next(self._arm.rows(MACHINES), None)
        return AccountInfo(self._subscription, self._currency)

    def instances(self) -> Iterator[ProviderInstance]:
        with promised(LABEL):
            machines = self._told(list(self._rows()))
        yield from machines

    def instance(self, ref: Ref) -> ProviderInstance | None:
        try:
            row = self._arm.get(place_of(ref), **{"$expand": "instanceView"})
        except NotFound:
            return None
        with promised(LABEL):
            return self._told([row])[0]

    def start(self, ref: Ref) -> None:
        self._act(ref, "start")

    def stop(self, ref: Ref) -> None:
        """Deallocates: what is only powered off is charged in full."""
        self._act(ref, "deallocate")

    def terminate(self, ref: Ref) -> None:
        try:
            self._arm.send("DELETE", place_of(ref))
        except NotFound:
            return

    def reboot(self, ref: Ref) -> None:
        self._act(ref, "restart")

    def create(self, spec: CreateSpec, token: str) -> Ref:
        location = spec.region or next(iter(self._networks), "")
        if location not in self._networks:
            raise Invalid(
                f"Azure needs a resource group and a subnet to rent in {location or 'a location'}: add them to the account."
            )
        return launch(self._arm, spec, token, (location, self._networks[location]))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for location in self._networks:
            if query.region in {"", location}:
                with promised(LABEL):
                    found = list(offers_of(self._arm, location, query, self._prices))
                yield from found

    def images(self) -> Iterator[ProviderImage]:
        with promised(LABEL):
            found = [image_of(row) for row in self._arm.rows("providers/Microsoft.Compute/images")]
        yield from found

    def notices(self) -> Iterator[Notice]:
        with promised(LABEL):
            found = [notice for row in self._rows() for notice in maintenance(row)]
        yield from found

    def _rows(self) -> Iterator[Row]:
        """A list of all machines has no power states; another list has them alone."""
        states = self._arm.rows(MACHINES, statusOnly="true")
        views = {row["id"].lower(): row["properties"].get("instanceView", {}) for row in states}
        for row in self._arm.rows(MACHINES):
            yield {**row, "properties": {**row["properties"], "instanceView": views.get(row["id"].lower(), {})}}

    def _act(self, ref: Ref, act: str) -> None:
        self._arm.send("POST", f"{place_of(ref)}/{act}")

    def _told(self, rows: list[Row]) -> list[ProviderInstance]:
        locations = {row["location"].lower() for row in rows}
        sizes = {pair: size for location in sorted(locations) for pair, size in self._sizes(location)}
        facts = Facts(sizes=sizes, addresses=self._addresses() if rows else {}, prices=self._prices)
        return [instance_of(row, facts) for row in rows]

    def _sizes(self, location: str) -> Iterator[tuple[tuple[str, str], Row]]:
        """Nothing for a key that may not read them: cores and memory stay unknown."""
        try:
            for row in self._arm.rows(path_of("providers", "Microsoft.Compute", "locations", location, "vmSizes")):
                yield (location, row["name"].lower()), row
        except ScopeMissing:
            return

    def _addresses(self) -> dict[str, str]:
        try:
            interfaces = list(self._arm.rows("providers/Microsoft.Network/networkInterfaces", NETWORK_VERSION))
            public = list(self._arm.rows("providers/Microsoft.Network/publicIPAddresses", NETWORK_VERSION))
        except ScopeMissing:
            return {}
        return addresses_of(interfaces, public)


def place_of(ref: Ref) -> str:
    group, _, name = ref.external_id.partition("/")
    return path_of("resourceGroups", group, "providers", "Microsoft.Compute", "virtualMachines", name)
