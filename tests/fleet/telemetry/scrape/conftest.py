"""A fake exporter on loopback, and targets that point at it."""

from __future__ import annotations

import pytest

from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.scrape import fetch
from tests.fakes.exporter import Behaviour, FakeExporter, answer, serving


@pytest.fixture
def exporter(settings):
    settings.ALLOWED_NETWORKS = ["127.0.0.0/8"]
    with serving(FakeExporter()) as running:
        yield running


@pytest.fixture
def impatient(monkeypatch):
    """A deadline that a test can wait for."""
    monkeypatch.setattr(fetch, "DEADLINE_SECONDS", 0.5)


@pytest.fixture
def target_of(exporter: FakeExporter):
    """target_of(machine, "/metrics", page) is a target whose page, text or behaviour, the fake serves."""

    def make(machine, path: str, page: str | Behaviour, **fields: object) -> ScrapeTarget:
        exporter.pages[path] = answer(page) if isinstance(page, str) else page
        return ScrapeTarget.objects.create(instance=machine, url=exporter.url(path), **fields)

    return make
