"""One server for each adapter, started when first needed and reset between tests; at the end each adapter is named with its score."""

from __future__ import annotations

from collections import Counter

import pytest

from fleet.providers.registry import adapters
from tests.fleet.providers.contract import cast
from tests.fleet.providers.fakes.base import Fake

SCORES: dict[str, Counter[str]] = {}


@pytest.fixture(scope="session")
def servers():
    """Fakes that run, by kind."""
    running: dict[str, Fake] = {}
    yield running
    for fake in running.values():
        fake.close()


@pytest.fixture
def fake(request, servers, monkeypatch):
    """The provider of the adapter that the test is for."""
    kind = request.param
    if kind not in servers:
        servers[kind] = cast.FAKES[kind]()
    peer = servers[kind]
    peer.reset()
    for name, value in peer.env().items():
        monkeypatch.setenv(name, value)
    peer.hurry(monkeypatch)
    yield peer
    assert not peer.drifts, "\n".join(peer.drifts)


@pytest.fixture
def adapter(request, fake):
    return adapters()[request.node.callspec.params["fake"]](fake.options)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    kind = next((word.removeprefix("adapter=") for word in report.keywords if word.startswith("adapter=")), "")
    if kind and (report.when == "call" or report.outcome != "passed"):
        SCORES.setdefault(kind, Counter())[report.outcome] += 1


def pytest_itemcollected(item: pytest.Item) -> None:
    kind = getattr(item, "callspec", None) and item.callspec.params.get("fake")  # type: ignore[attr-defined]
    if kind and "/contract/" in item.nodeid:
        item.keywords[f"adapter={kind}"] = True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not SCORES:
        return
    terminalreporter.section("providers held to the contract")
    for kind, adapter in adapters().items():
        told = ", ".join(f"{count} {outcome}" for outcome, count in SCORES.get(kind, Counter()).items())
        terminalreporter.line(f"{adapter.label:24} {kind:14} {told or cast.where_else(kind)}")
