"""/metrics of an installation whose Valkey knows nothing yet."""

from __future__ import annotations

import pytest
from httpx import ASGITransport, AsyncClient, Response
from prometheus_client.parser import text_string_to_metric_families

from config import health as health_module
from config.asgi import application
from config.health import Health
from fleet import meters as meters_module

TOKEN = "a-token-that-is-long-enough-for-this"


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch):
    """Counts of other tests lie in the same Valkey, and in this process."""
    meters_module.client().delete(meters_module.COUNTS_KEY, meters_module.PROCESSES_KEY)
    monkeypatch.setattr(meters_module.meters, "_counts", {})
    monkeypatch.setattr(health_module, "health", Health())
    yield
    meters_module.client().delete(meters_module.COUNTS_KEY, meters_module.PROCESSES_KEY)


@pytest.fixture
def open_page(settings, monkeypatch: pytest.MonkeyPatch):
    """METRICS_TOKEN is set, and no page is kept from an earlier test."""
    settings.METRICS_TOKEN = TOKEN
    monkeypatch.setattr("config.metrics.page.KEEP_SECONDS", 0.0)


async def ask(token: str | None = TOKEN, method: str = "GET") -> Response:
    headers = {b"Authorization": f"Bearer {token}".encode()} if token is not None else {}
    async with AsyncClient(transport=ASGITransport(application), base_url="http://10.0.0.7") as client:
        return await client.request(method, "/metrics", headers=headers)


def series(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """{name: {label values: value}}"""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found
