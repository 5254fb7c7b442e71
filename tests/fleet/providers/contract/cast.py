"""Who is held to the contract: every adapter that lists machines, found in the registry, by the fake beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fleet.providers.base import Capability
from fleet.providers.registry import adapters, kinds_with
from tests.fleet.providers.fakes import fake_class
from tests.fleet.providers.fakes.base import Fake

READERS = kinds_with(Capability.LIST)
FAKES: dict[str, type[Fake]] = {kind: found for kind in READERS if (found := fake_class(kind))}


def has(kind: str, *capabilities: Capability) -> bool:
    return set(capabilities) <= adapters()[kind].capabilities


def each(*capabilities: Capability, when: Callable[[type[Fake]], bool] = lambda _: True) -> Any:
    """Runs a test for every adapter with these capabilities, and a fake that can show the case."""
    kinds = [kind for kind, found in FAKES.items() if has(kind, *capabilities) and when(found)]
    return pytest.mark.parametrize("fake", kinds, indirect=True)


def each_with(values: Callable[[str, type[Fake]], list[Any]], name: str) -> Any:
    """Runs a test for every adapter and each of its values."""
    pairs = [(kind, value) for kind, found in FAKES.items() for value in values(kind, found)]
    ids = [f"{kind}-{value}" for kind, value in pairs]
    return pytest.mark.parametrize(("fake", name), pairs, indirect=["fake"], ids=ids)


def where_else(kind: str) -> str:
    if kind in FAKES:
        return "not run"
    return "NOT HELD TO IT" if kind in READERS else "lists no machines"
