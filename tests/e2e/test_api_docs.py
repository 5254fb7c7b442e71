"""The API's page: drawn under our policy, out of our own files, and good for trying the API as the person who is signed in."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def open_docs(open_context, server):
    def open_page(user=None, address="/api/v1/docs/", **options) -> Page:
        page: Page = open_context(user, **options).new_page()
        foreign: list[str] = []
        ours = (server.url, "data:")
        page.on("request", lambda asked: None if asked.url.startswith(ours) else foreign.append(asked.url))
        page.goto(address)
        page.locator("#operations-tag-me").wait_for()
        assert foreign == []
        return page

    return open_page


def open_operation(page: Page, group: str, name: str) -> Locator:
    page.locator(f"#operations-tag-{group} button").click()
    operation = page.locator(f"#operations-{group}-{name}")
    operation.locator("button").first.click()
    return operation


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)])
def test_it_is_drawn_in_light_and_dark_wide_and_narrow(open_docs, scheme, width):
    page = open_docs(width=width, color_scheme=scheme)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"api-docs-{scheme}-{width}.png")
    open_operation(page, "instances", "instances_list")
    expect(page.get_by_text("Ids of accounts, separated by commas.")).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')") is (scheme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_signed_in_person_tries_the_api_on_it(open_docs, alice):
    page = open_docs(alice)
    operation = open_operation(page, "me", "me_retrieve")
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table")
    expect(answer.get_by_text("200", exact=True).first).to_be_visible()
    expect(answer).to_contain_text('"username": "alice"')


def test_every_group_is_there_to_be_found_and_every_operation_in_it(open_docs):
    page = open_docs()
    paths = page.request.get("/api/v1/schema/?format=json").json()["paths"].values()
    groups = Counter(operation["tags"][0] for path in paths for operation in path.values())
    drawn = page.locator(".opblock-tag").evaluate_all("all => all.map(one => one.dataset.tag)")
    assert sorted(drawn) == sorted(groups)
    for group in ("accounts", "usage"):
        page.locator(f"#operations-tag-{group} button").click()
        expect(page.locator(f"[id^=operations-{group}-]")).to_have_count(groups[group])


def test_a_word_leaves_the_groups_that_it_names(open_docs):
    page = open_docs()
    page.get_by_placeholder("Filter by tag").fill("offer")
    expect(page.locator(".opblock-tag")).to_have_text(["offer-sources", "offers"])


def test_a_link_to_one_operation_opens_it_in_its_group(open_docs, open_context):
    page = open_docs(address="/api/v1/docs/#/instances/instances_list")
    expect(page.locator("#operations-instances-instances_list")).to_be_in_viewport()
    expect(page.get_by_text("Ids of accounts, separated by commas.")).to_be_visible()
    # Swagger UI notes each name with an underscore as an old way to write a space, and reads it all the same.
    open_context.complaints[:] = [line for line in open_context.complaints if "escaping deep link" not in line]
