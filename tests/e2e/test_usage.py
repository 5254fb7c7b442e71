"""The fleet's usage in a browser: charts drawn and redrawn by filters, the month by keyboard, on a small phone."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.teams.models import Team, User
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.columns import FIVE_MINUTES, HOUR
from fleet.telemetry.rollups.fleet import begin_fleet, step_fleet
from fleet.telemetry.rollups.models import GpuRollupHour, RollupProgress
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from tests.seed import seed_fleet

from .waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
DAYS = 2


@pytest.fixture
def fleet(server) -> Team:
    """Two days of hours: by day at work, by night held; one machine is never heard of."""
    now = timezone.now()
    ensure_partitions(now=now, since=now - timedelta(days=DAYS + 1))
    team = seed_fleet(now=now + timedelta(seconds=50), samples=False)
    hour = HOUR.floor(now)
    GpuRollupHour.objects.bulk_create(
        _row(gpu, hour - number * HOUR.width)
        for machine in team.instances.all()
        for gpu in machine.gpus.all()
        for number in range(1, 24 * DAYS)
    )
    RollupProgress.objects.create(resolution=HOUR.name, rolled_until=hour)
    RollupProgress.objects.create(resolution=FIVE_MINUTES.name, rolled_until=hour)
    begin_fleet(now=now)
    while step_fleet(HOUR):
        pass
    return team


def _row(gpu, at) -> GpuRollupHour:
    working = 6 <= at.hour < 20
    seconds = dict.fromkeys(SECONDS_COLUMNS.values(), 0.0) | {"working_seconds" if working else "held_seconds": 3600.0}
    percent = 50.0 + gpu.pk % 40 if working else 0.0
    return GpuRollupHour(
        gpu=gpu, bucket_at=at, samples=60, coverage=1, utilization_percent_avg=percent, power_watts_avg=300, **seconds
    )


@pytest.fixture
def anna(fleet: Team) -> User:
    return User.objects.get(username="anna")


def drawn(page, name: str) -> int:
    """How many figures the chart's second trace holds; the first hatches what is missing."""
    script = f"document.querySelector('[data-usage-chart=\"{name}\"]')?.data?.[1]?.y.filter((value) => value !== null).length ?? 0"
    return int(page.evaluate(script))


def test_charts_follow_span_split_and_filter_in_place(anna, open_context):
    page = open_context(anna).new_page()
    page.goto("/t/acme/usage/")
    until(page, lambda: drawn(page, "utilization") == 24 * DAYS - 1)
    page.evaluate("window.kept = true")
    page.get_by_label("Split by").select_option("project")
    until(page, lambda: drawn(page, "utilization_p95") == 24 * DAYS - 1)
    expect(page).to_have_url(re.compile("split=project"))
    page.get_by_role("link", name="30 d", exact=True).click()
    expect(page).to_have_url(re.compile(r"span=30d.*split=project"))
    until(page, lambda: drawn(page, "part-1") > 0)
    page.locator("select[name=gpu_model]").select_option(index=1)
    expect(page).to_have_url(re.compile("gpu_model="))
    expect(page.locator(".heat")).to_be_visible()
    assert page.evaluate("window.kept") is True


def test_the_month_by_keyboard(anna, open_context):
    page = open_context(anna).new_page()
    page.goto("/t/acme/usage/")
    cell = page.locator(".heat td[tabindex='0']")
    expect(cell).to_have_count(1)
    cell.focus()
    first = page.locator(".card-tip h3").inner_text()
    expect(page.locator(".card-tip p")).to_have_text(re.compile("Working|Held idle"))
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".heat td:focus")).to_have_count(1)
    assert page.locator(".card-tip h3").inner_text() != first
    page.keyboard.press("Home")
    expect(page.locator(".card-tip p")).to_have_text("nothing known")
    page.keyboard.press("Escape")
    expect(page.locator(".card-tip")).to_be_hidden()
    page.get_by_role("button", name="Idle share").click()
    expect(page.locator(".heat")).to_have_attribute("data-show", "idle")
    expect(page.get_by_text("0 to 100% of the time held idle or free")).to_be_visible()


def test_a_machine_has_its_month(fleet, anna, open_context):
    page = open_context(anna).new_page()
    page.goto(f"/t/acme/instances/{fleet.instances.get(name='train-h100-01').pk}/")
    page.get_by_role("heading", name="The month, hour by hour").scroll_into_view_if_needed()
    expect(page.locator(".heat td[data-s='held']").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_of_it_fits_a_small_phone(fleet, anna, open_context, scheme):
    page = open_context(anna, width=360, height=740, color_scheme=scheme).new_page()
    page.goto("/t/acme/usage/?split=project&span=30d")
    expect(page.locator(".heat")).to_be_visible()
    until(page, lambda: drawn(page, "utilization_p50") > 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_scripts_there_are_tables(fleet, anna, open_context):
    page = open_context(anna, java_script_enabled=False).new_page()
    page.goto("/t/acme/usage/")
    page.get_by_text("Figures as a table or file").first.click()
    expect(page.locator("details[open] table").first).to_be_visible()
    page.get_by_role("link", name="Reading the hours…").click()
    expect(page.locator(".heat td[data-s='held']").first).to_be_visible()
