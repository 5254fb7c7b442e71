"""One stateful fake per provider, on loopback, held to the provider's own description of its API (docs/adding-a-provider.md)."""

from __future__ import annotations

import importlib
import importlib.util

from fleet.providers.registry import adapters
from tests.fleet.providers.fakes.base import Fake


def fake_class(kind: str) -> type[Fake] | None:
    """The fake beside the adapter's module: fleet/providers/acme.py is answered by FAKE of fakes/acme.py. None where there is none."""
    name = f"{__name__}.{adapters()[kind].__module__.rsplit('.', 1)[1]}"
    if importlib.util.find_spec(name) is None:
        return None
    found: type[Fake] = importlib.import_module(name).FAKE
    return found
