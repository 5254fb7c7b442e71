"""The API's page: drawn under our policy, out of our own files, and good for trying the API as the person who is signed in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def open_docs(open_context, server):
    def open_page(user=None, **options) -> Page:
        page: Page = open_context(user, **options).new_page()
        foreign: list[str] = []
        ours = (server.url, "data:")
        page.on("request", lambda asked: None if asked.url.startswith(ours) else foreign.append(asked.url))
        page.goto("/api/v1/docs/")
        page.locator("#operations-me-me_retrieve").wait_for()
        assert foreign == []
        return page

    return open_page


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)])
def test_it_is_drawn_in_light_and_dark_wide_and_narrow(open_docs, scheme, width):
    page = open_docs(width=width, color_scheme=scheme)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"api-docs-{scheme}-{width}.png")
    page.locator("#operations-instances-instances_list button").first.click()
    expect(page.get_by_text("Ids of accounts, separated by commas.")).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')") is (scheme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_signed_in_person_tries_the_api_on_it(open_docs, alice):
    page = open_docs(alice)
    operation = page.locator("#operations-me-me_retrieve")
    operation.locator("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table")
    expect(answer.get_by_text("200", exact=True).first).to_be_visible()
    expect(answer).to_contain_text('"username": "alice"')
