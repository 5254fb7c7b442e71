"""Every page by keyboard, on a small phone, in Chinese, in the dark, and without scripts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone
from playwright.sync_api import expect

from fleet.alerts.door import raise_event
from fleet.teams.models import Team, User
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.rollups.models import GpuRollupHour, RollupProgress
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from tests.seed import PASSWORD, seed_fleet

from .waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

ADDRESSES = (
    "",
    "instances/",
    "instances/?group=project",
    "machine",
    "states/",
    "settings/",
    "settings/members/",
    "settings/ssh/",
    "images/",
    "usage/",
    "usage/?split=gpu_model",
)


@pytest.fixture
def fleet(server) -> Team:
    """A fleet of all states, with latest values and without a past."""
    ensure_partitions(now=timezone.now())
    # A little ahead, within what clocks may differ: on a slow machine the fleet must not fall silent during the test.
    return seed_fleet(now=timezone.now() + timedelta(seconds=50), samples=False)


@pytest.fixture
def anna(fleet: Team) -> User:
    return User.objects.get(username="anna")


def address_of(fleet: Team, name: str) -> str:
    machine = fleet.instances.get(name="train-h100-01")
    return f"/t/acme/instances/{machine.pk}/" if name == "machine" else f"/t/acme/{name}"


def test_sign_in_leads_to_the_fleet(server, open_context):
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.PBKDF2PasswordHasher"]):
        seed_fleet(now=timezone.now(), samples=False)
    page = open_context().new_page()
    page.goto("/")
    page.get_by_label("User name").fill("anna")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()


def test_arrow_keys_move_between_machines_and_open_their_card(anna, open_context):
    page = open_context(anna).new_page()
    page.goto("/t/acme/")
    blocks = page.locator(".machine")
    blocks.first.focus()
    page.keyboard.press("ArrowRight")
    focused = page.locator(".machine:focus")
    expect(focused).to_have_count(1)
    name = focused.locator(".m1 b").inner_text()
    assert name != blocks.first.locator(".m1 b").inner_text()
    expect(page.locator(".card-tip h3")).to_contain_text(name)
    page.keyboard.press("Escape")
    expect(page.locator(".card-tip")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/instances/\d+/"))


def test_a_key_filters_and_the_levels_change_the_tiles(anna, open_context):
    page = open_context(anna).new_page()
    page.goto("/t/acme/")
    key = page.locator('.key[data-s="stalled"]')
    key.focus()
    page.keyboard.press("Enter")
    expect(key).to_have_attribute("aria-pressed", "true")
    assert page.locator(".tiles .gpu:not(.off)").count() == page.locator('.tiles .gpu[data-s="stalled"]').count() == 8
    page.get_by_role("button", name="Memory", exact=True).click()
    expect(page.locator(".map")).to_have_attribute("data-view", "mem")


def test_choosing_gpus_narrows_the_charts(fleet, anna, open_context):
    page = open_context(anna).new_page()
    page.goto(address_of(fleet, "machine"))
    page.locator(".gpu.big").nth(2).click()
    script = "document.querySelector('[data-series-chart=busy]').data.slice(1).map((trace) => trace.visible)"
    until(page, lambda: page.evaluate(script) == [number == 2 for number in range(8)])


def rolled_up(fleet: Team) -> None:
    """A day and a half of rollups of a machine, until an hour ago."""
    now = HOUR.floor(timezone.now())
    common = {"samples": 720, "coverage": 1, **dict.fromkeys(SECONDS_COLUMNS.values(), 0)}
    GpuRollupHour.objects.bulk_create(
        GpuRollupHour(
            gpu=gpu, bucket_at=now - timedelta(hours=hour), utilization_percent_avg=40 + 5 * gpu.index + hour, **common
        )
        for gpu in fleet.instances.get(name="train-h100-01").gpus.all()
        for hour in range(2, 38)
    )
    RollupProgress.objects.create(resolution=HOUR.name, rolled_until=now - HOUR.width)


def test_a_longer_span_is_drawn_in_place_and_says_what_it_is_made_of(fleet, anna, open_context):
    rolled_up(fleet)
    page = open_context(anna).new_page()
    page.goto(address_of(fleet, "machine"))
    expect(page.locator("[data-span-note]")).to_have_text("binned raw samples")
    page.get_by_role("link", name="7 d", exact=True).click()
    expect(page.locator("[data-span-note]")).to_have_text("rollups of 1 hour")
    expect(page).to_have_url(re.compile(r"span=7d"))
    script = "document.querySelector('[data-series-chart=busy]').data[1].y.filter((value) => value !== null).length"
    until(page, lambda: page.evaluate(script) == 36)


def test_filters_work_without_loading_the_page(anna, open_context):
    page = open_context(anna).new_page()
    page.goto("/t/acme/instances/")
    page.keyboard.press("/")
    page.keyboard.type("eval")
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page).to_have_url(re.compile("q=eval"))
    expect(page.locator("#q")).to_be_focused()
    page.locator("label.chip", has_text="Held idle").click()
    expect(page.locator("tbody tr")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_scrolls_sideways_on_a_small_phone(fleet, anna, open_context, scheme):
    page = open_context(anna, width=360, height=740, color_scheme=scheme).new_page()
    for name in ADDRESSES:
        page.goto(address_of(fleet, name))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name


def test_the_browsers_language_is_spoken(fleet, anna, open_context):
    page = open_context(anna, locale="zh-CN").new_page()
    page.goto("/t/acme/")
    expect(page.get_by_role("heading", name="机群")).to_be_visible()
    page.get_by_role("button", name="Switch to English").click()
    expect(page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()


def test_charts_take_the_colours_of_the_theme(fleet, anna, open_context):
    page = open_context(anna, color_scheme="light").new_page()
    page.goto(address_of(fleet, "machine"))
    chart = "document.querySelector('[data-series-chart=busy]')"
    until(page, lambda: page.evaluate(f"Boolean({chart}.layout)"))
    before = page.evaluate(f"{chart}.layout.font.color")
    page.get_by_role("button", name="Switch between light and dark").click()
    until(page, lambda: page.evaluate(f"{chart}.layout.font.color") != before)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_everything_can_be_read_without_scripts(fleet, anna, open_context):
    machine = fleet.instances.get(name="llm-pre-03")
    subject = f"instance:{machine.pk}"
    raise_event(team=machine.team, cause="machine.unreachable", subject=subject, severity="urgent", instance=machine, now=timezone.now())  # fmt: skip
    page = open_context(anna, java_script_enabled=False).new_page()
    page.goto("/t/acme/")
    expect(page.locator(".machine")).to_have_count(19)
    expect(page.get_by_text("llm-pre-03 went quiet").first).to_be_visible()
    page.goto("/t/acme/instances/?q=gh200")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.goto(address_of(fleet, "machine"))
    page.get_by_text("Figures as a table or file").first.click()
    expect(page.locator("details[open] table").first).to_be_visible()


def test_names_from_machines_are_text_everywhere(fleet, anna, open_context):
    hostile = "<img src=x onerror=\"document.title='owned'\">"
    machine = fleet.instances.get(name="train-h100-01")
    machine.name = hostile
    machine.save()
    page = open_context(anna).new_page()
    page.goto("/t/acme/")
    page.locator(f"#m{machine.pk}").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".card-tip h3")).to_contain_text(hostile)
    page.goto(f"/t/acme/instances/{machine.pk}/")
    expect(page.get_by_role("heading", level=1)).to_contain_text(hostile)
    assert page.title() != "owned"


def test_plotly_gets_names_as_text(fleet, anna, open_context):
    page = open_context(anna).new_page()
    page.goto(address_of(fleet, "machine"))
    escaped = page.evaluate("import('/static/js/charts.js').then((charts) => charts.escapeText('<b onclick=\"x\">&'))")
    assert escaped == "&lt;b onclick=&quot;x&quot;&gt;&amp;"


@pytest.mark.parametrize("width", [1440, 390])
def test_a_typed_price_stands_under_its_label(server, alice, make_instance, open_context, width):
    """A typed price was read from nobody, so no age stands beside it."""
    make_instance(gpus=1, price_per_hour="3.00")
    page = open_context(alice, width=width).new_page()
    page.goto("/t/acme/")
    figure = page.locator(".fig").first
    assert figure.locator(".age").count() == 0
    label, value, whole = (figure.locator(place).bounding_box() for place in (".k", ".v", ":scope"))
    assert label
    assert value
    assert whole
    assert value["y"] >= label["y"] + label["height"] - 1
    assert value["x"] == pytest.approx(label["x"], abs=1)
    assert value["y"] + value["height"] <= whole["y"] + whole["height"]
