"""Waiting for a page without its help: Playwright's own wait_for_function needs `eval`, which our policy forbids."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page, expect


def until(page: Page, what: Callable[[], bool], *, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "the page did not come to it"
        page.wait_for_timeout(50)


def connected(page: Page, mode: str = "socket") -> None:
    """The page gets its samples this way: socket, polling, or off."""
    expect(page.locator("body")).to_have_attribute("data-live-mode", mode, timeout=20_000)


def figures(page: Page, chart: str = "busy") -> list[float]:
    """What the first line of a chart shows, gaps left out; empty until it is drawn."""
    script = """(name) => (document.querySelector(`[data-series-chart="${name}"]`).data?.[1].y ?? []).filter((y) => y !== null)"""
    shown: list[float] = page.evaluate(script, chart)
    return shown
