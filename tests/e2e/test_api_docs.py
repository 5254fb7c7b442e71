from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.programs import needs

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def browser(monkeypatch):
    # Playwright's loop makes Django take the test for asynchronous code.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs("chromium"), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.mark.e2e
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_api_page_renders_under_our_policy(live_server, browser, viewport, scheme):
    page = browser.new_page(viewport=viewport, color_scheme=scheme)
    complaints: list[str] = []
    foreign: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda asked: None if asked.url.startswith((live_server.url, "data:")) else foreign.append(asked.url)
    )
    page.goto(f"{live_server.url}/api/v1/docs/")
    page.get_by_text("/api/v1/instances/", exact=False).first.wait_for()
    page.locator("#operations-instances-instances_list button").first.click()
    page.get_by_text("Ids of accounts, separated by commas.").first.wait_for()
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')") is (scheme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert complaints == []
    assert foreign == []
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"api-docs-{scheme}-{viewport['width']}.png")
