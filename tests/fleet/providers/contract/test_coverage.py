"""Nobody escapes: an adapter without a fake fails here."""

from __future__ import annotations

import pytest

from fleet.providers.base import Capability
from fleet.providers.registry import adapters
from tests.fleet.providers.contract.cast import FAKES, READERS


@pytest.mark.parametrize("kind", READERS)
def test_every_adapter_that_lists_machines_has_a_fake(kind):
    module = adapters()[kind].__module__.rsplit(".", 1)[1]
    assert kind in FAKES, (
        f"The adapter {kind!r} is held to no contract: write tests/fleet/providers/fakes/{module}.py (docs/adding-a-provider.md)."
    )


@pytest.mark.parametrize("kind", FAKES)
def test_a_fake_shows_every_case_that_its_adapter_can_meet(kind):
    """Offers and orders need something known to look for; a provider that can stop has a word for it."""
    fake, adapter = FAKES[kind], adapters()[kind]
    if adapter.capabilities & {Capability.OFFERS, Capability.CREATE}:
        assert fake.known_offer is not None
    assert fake.many >= 2
    assert set(fake.options) == {field.name for field in adapter.fields}
    assert all(fake.options[field.name] for field in adapter.fields if field.required)
