"""An adapter whose listing the test writes, and the accounts that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import ClassVar

import pytest

from fleet.inventory.accounts import create_account
from fleet.inventory.models import ProviderAccount
from fleet.providers import registry
from fleet.providers.base import (
    AccountInfo,
    Billing,
    Capability,
    Ending,
    Field,
    InstanceState,
    Money,
    ProviderImage,
    ProviderInstance,
    Ref,
    StopSemantics,
)
from fleet.providers.errors import InvalidOption
from fleet.teams.audit import Actor

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECRET = "sk-very-secret-0123456789"


class Scripted:
    """Lists what the test put into `machines`; raises `error` where it has one, after the machines before it."""

    kind: ClassVar[str] = "scripted"
    label: ClassVar[str] = "Scripted"
    fields: ClassVar[tuple[Field, ...]] = (
        Field(name="key", label="API key", secret=True),
        Field(name="team", label="Team id", required=False),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.LIST, Capability.IMAGES})
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ()
    semantics: ClassVar[StopSemantics] = StopSemantics(can_stop=False)
    machines: ClassVar[list[ProviderInstance]] = []
    own_images: ClassVar[list[ProviderImage]] = []
    error: ClassVar[Exception | None] = None
    info: ClassVar[AccountInfo] = AccountInfo("lab", "USD")
    keys_seen: ClassVar[list[str]] = []

    def __init__(self, options: Mapping[str, str]) -> None:
        if options["team"] == "nowhere":
            raise InvalidOption("team", "There is no team %(name)s.", name=options["team"])
        self.keys_seen.append(options["key"])

    def verify(self) -> AccountInfo:
        self._fail()
        return self.info

    def instances(self) -> Iterator[ProviderInstance]:
        yield from self.machines
        self._fail()

    def images(self) -> Iterator[ProviderImage]:
        yield from self.own_images

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture
def provider(monkeypatch) -> type[Scripted]:
    """The scripted adapter, registered beside the real ones."""
    known = {**registry.adapters(), Scripted.kind: Scripted}
    for module in ("inventory.adapters", "inventory.offers.places", "providers.registry"):
        monkeypatch.setattr(f"fleet.{module}.adapters", lambda: known)
    for name, value in (("machines", []), ("own_images", []), ("error", None), ("rule_version", 1), ("keys_seen", [])):
        monkeypatch.setattr(Scripted, name, value)
    return Scripted


@pytest.fixture
def lab(provider, acme, alice) -> ProviderAccount:
    """An account of acme at the scripted provider."""
    return create_account(
        actor=Actor(alice, "alice", "page"), team=acme, kind="scripted", name="Lab", values={"key": SECRET}
    )


@pytest.fixture
def listed() -> Callable[..., ProviderInstance]:
    """listed("i-1", rate="2.50") is one running machine in a listing."""

    def make(ref: str, *, rate: str | None = None, region: str = "eu-1", **fields: object) -> ProviderInstance:
        values: dict[str, object] = {
            "name": f"name of {ref}",
            "state": InstanceState.RUNNING,
            "raw_state": "running",
            "billing": Billing.FULL,
            "rate": Money(Decimal(rate), "USD") if rate else None,
            **fields,
        }
        return ProviderInstance(ref=Ref(ref, region), **values)  # type: ignore[arg-type]

    return make
