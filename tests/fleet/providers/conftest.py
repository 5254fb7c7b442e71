"""For modules about one provider's own ways: they name it by KIND, and get its fake and its adapter."""

from __future__ import annotations

import pytest

from fleet.providers.registry import adapters
from tests.fleet.providers.fakes import fake_class


@pytest.fixture(scope="module")
def server(request):
    """The provider's fake, running."""
    made = fake_class(request.module.KIND)
    assert made is not None
    fake = made()
    yield fake
    fake.close()


@pytest.fixture
def fake(server, monkeypatch):
    """The fake, as new, with the adapter led to it; at the end nothing may have drifted from its description."""
    server.reset()
    server.hurry(monkeypatch)
    for name, value in server.env().items():
        monkeypatch.setenv(name, value)
    yield server
    assert not server.drifts


@pytest.fixture
def adapter(request, fake):
    return adapters()[request.module.KIND](fake.options)
