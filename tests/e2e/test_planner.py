"""The planner in a browser: typing changes the answer, the address follows, what is wrong is marked and nothing is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from fleet.teams.models import User

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
PAGE = "/t/acme/planner/"
QLORA = f"{PAGE}?method=qlora"


@pytest.fixture
def page(vera: User, open_context) -> Page:
    page: Page = open_context(vera).new_page()
    page.goto(QLORA)
    return page


def verdict(page: Page) -> str:
    return page.locator("#h-best").inner_text()


def test_typing_changes_the_answer_and_the_address_without_a_reload(page):
    page.evaluate("window.sameDocument = true")
    before = verdict(page)
    page.get_by_label("Samples").press_sequentially("200000", delay=15)
    expect(page.locator("#h-best")).not_to_have_text(before)
    expect(page).to_have_url(re.compile(r"\?method=qlora&samples=200000$"))
    expect(page.locator("#plan-said")).to_have_text(verdict(page))
    expect(page.get_by_label("Samples")).to_be_focused()
    assert page.evaluate("window.sameDocument")


def test_what_is_wrong_is_marked_and_the_answer_before_stays(page):
    before = verdict(page)
    field = page.get_by_label("Epochs")
    field.fill("-1")
    expect(page.locator("#error-epochs")).to_contain_text("Give a number from 0.001")
    expect(field).to_have_attribute("aria-invalid", "")
    expect(page.locator("#plan-errors")).to_contain_text("Epochs")
    assert verdict(page) == before
    field.fill("1")
    expect(page.locator("#error-epochs")).to_be_empty()
    expect(page.locator("#h-best")).not_to_have_text(before)


def test_a_row_of_the_table_chooses_its_gpu_and_going_back_takes_it_back(page):
    page.locator('[data-table="options"] a', has_text="H100 SXM5").click()
    expect(page.locator("#h-best")).to_contain_text("H100 SXM5")
    expect(page.get_by_label("GPU", exact=True)).to_have_value("h100-sxm-80")
    expect(page).to_have_url(re.compile("gpu=h100-sxm-80"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"\?method=qlora$"))
    expect(page.locator("#h-best")).not_to_contain_text("H100 SXM5")


def test_tables_are_sorted_by_their_heads_and_stay_so(page):
    head = page.locator('[data-table="options"] th', has_text="Runs")
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    first = page.locator('[data-table="options"] tbody tr').first
    hours = page.locator('[data-table="options"] tbody td[data-l="Runs"]').evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.v))"
    )
    assert hours == sorted(hours)
    before = first.inner_text()
    page.get_by_label("Samples").fill("40000")
    expect(first).not_to_have_text(before)
    expect(page.locator('[data-table="options"] th', has_text="Runs")).to_have_attribute("aria-sort", "ascending")


def test_serving_has_its_own_fields(page):
    page.locator(".seg.wide label", has_text="Serving").click()
    expect(page.locator("#h-best")).to_contain_text("tokens/s")
    expect(page.get_by_label("Requests at a time")).to_be_visible()
    expect(page.get_by_label("Samples")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?work=serving$"))


def test_memory_is_drawn_against_the_card(page):
    chart = page.locator('[data-plan-chart="memory"]')
    expect(chart.locator(".bars .point").first).to_be_visible()
    expect(chart).to_contain_text("card: 2")
    shapes = chart.evaluate("chart => chart.layout.shapes.length")
    whisker = chart.evaluate("chart => chart.data.at(-1).error_x.array[0]")
    assert shapes == 1
    assert whisker > 0


def test_a_file_is_copied_as_it_stands(page):
    panel = page.locator("#launch")
    code = panel.locator(".code code").first.text_content()
    assert panel.locator("[data-copy-code]").first.get_attribute("data-copy") == code
    assert code


def test_an_error_message_is_explained_while_it_is_pasted(page):
    page.get_by_label("Paste it, or the end of the log").fill("RuntimeError: CUDA error: device-side assert triggered")
    expect(page.locator("#symptoms")).to_contain_text("An index is out of range on the GPU")


def test_it_works_without_scripts(vera, open_context):
    page = open_context(vera, java_script_enabled=False).new_page()
    page.goto(QLORA)
    page.get_by_label("Samples").fill("777")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?method=qlora&samples=777$"))
    expect(page.locator("#h-best")).to_be_visible()


@pytest.mark.parametrize(
    "query", ["?method=full&gpu=h100-sxm-80", "?work=serving&model=meta-llama%2FMeta-Llama-3.1-70B"]
)
def test_it_fits_a_small_phone_and_the_answer_comes_before_the_tools(vera, open_context, query):
    page = open_context(vera, width=360).new_page()
    page.goto(PAGE + query)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    places = [page.locator(name).bounding_box()["y"] for name in ("#plan-form", "#h-best", "#config")]
    assert places == sorted(places)
