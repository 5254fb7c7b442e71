"""Finds every adapter: a module of this package that decorates its class with @register."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import fleet.providers
from fleet.providers.base import Capability, Provider

P = TypeVar("P", bound=type[Provider])
_adapters: dict[str, type[Provider]] = {}


def register(adapter: P) -> P:
    if _adapters.setdefault(adapter.kind, adapter) is not adapter:
        raise ValueError(f"two adapters are called {adapter.kind!r}")
    return adapter


@cache
def adapters() -> Mapping[str, type[Provider]]:
    """Every adapter by kind, in the order of their labels."""
    for module in pkgutil.iter_modules(fleet.providers.__path__):
        importlib.import_module(f"fleet.providers.{module.name}")
    return dict(sorted(_adapters.items(), key=lambda item: item[1].label.lower()))


def kinds_with(capability: Capability) -> list[str]:
    return [kind for kind, adapter in adapters().items() if capability in adapter.capabilities]
