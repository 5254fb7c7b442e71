"""A machine of the sandbox, from its launch to its end, in Chromium."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from fleet.inventory.accounts import create_account
from fleet.inventory.models import Instance, ProviderAccount
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.teams.audit import Actor
from fleet.teams.models import Membership, Role, Team, User
from tests.fleet.sandbox.loopback import serving

from .acting import LIVE_MS, poll, prove, whole_life

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
# What passes at the sandbox between two looks: its machines take their time to boot and to end.
STEP_SECONDS = 15.0


class Hurried:
    """The time at the sandbox: the real one, pushed on by each `push`."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead

    def push(self) -> None:
        self.ahead += STEP_SECONDS


@pytest.fixture
def bob() -> User:
    user = User.objects.create_user("bob", "bob@example.org")
    Membership.objects.create(team=Team.objects.create(name="Acme", slug="acme"), user=user, role=Role.OPERATOR)
    return user


@pytest.fixture
def clock() -> Hurried:
    return Hurried()


@pytest.fixture
def account(bob, clock, tmp_path, monkeypatch) -> Iterator[ProviderAccount]:
    desk = Desk(tmp_path / "provider.json", clock)
    with serving(SandboxAPI(desk)) as port:
        monkeypatch.setenv("SANDBOX_PORT", str(port))
        account = create_account(
            actor=Actor(bob, "bob", "page"),
            team=Team.objects.get(),
            kind="sandbox",
            name="Lab",
            values={"key": desk.full_key},
            monitor_only=False,
        )
        poll(account)
        Instance.objects.update(managed=True)
        yield account


def test_from_launch_to_end(server, open_context, bob, account, clock):
    def order(page: Page) -> None:
        page.get_by_label("Account", exact=True).select_option(label="Lab")
        page.get_by_label("Type", exact=True).fill("sb.l4x1")
        page.get_by_label("Region", exact=True).fill("ap-tokyo-1")
        page.get_by_label("Name", exact=True).fill("try-01")
        page.get_by_label("Disk, GB", exact=True).fill("50")
        page.get_by_label("Install the agent").uncheck()

    whole_life(open_context(bob).new_page(), clock.push, order=order)


@pytest.mark.parametrize("width", [390, 1440])
def test_several_are_stopped_with_one_question(server, open_context, bob, account, clock, width):
    page = open_context(bob, width=width).new_page()
    page.goto("/t/acme/instances/")
    names = sorted(Instance.objects.filter(state="running").values_list("name", flat=True))[:2]
    for name in names:
        page.get_by_label(f"Mark {name}").check()
    expect(page.locator("[data-marked]")).to_have_text("2")
    page.locator("#bulk").get_by_role("button", name="Stop…").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Stop 2 machines?")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Stop", exact=True).press("Enter")
    expect(page.locator("#batch header")).to_contain_text("2 under way")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    prove(clock.push)
    expect(page.locator("#batch header")).to_contain_text("1 proved", timeout=LIVE_MS)


def test_all_of_it_without_a_script(server, open_context, bob, account):
    page = open_context(bob, java_script_enabled=False).new_page()
    machine = Instance.objects.filter(state="running").order_by("name")[0]
    page.goto(f"/t/acme/instances/{machine.pk}/")
    page.locator("#acts").get_by_role("link", name="Terminate…").click()
    page.get_by_label("Type the machine’s name to confirm").fill(machine.name)
    page.get_by_role("button", name="Terminate and lose local data").click()
    expect(page.locator("#operation")).to_contain_text("Terminate ")
    expect(page.locator("#operation")).to_contain_text("Asked for")
