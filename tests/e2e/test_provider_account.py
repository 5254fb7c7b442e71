"""A provider's account in Chromium: typed, refused at its field, tried while the page waits, disconnected after a question."""

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.inventory.checks import run_checks
from fleet.inventory.models import ProviderAccount
from fleet.teams.models import Membership, Role, Team, User

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def alice() -> User:
    user = User.objects.create_user("alice", "alice@example.org")
    Membership.objects.create(team=Team.objects.create(name="Acme", slug="acme"), user=user, role=Role.ADMIN)
    return user


def test_a_key_is_tried_while_the_page_waits(server, open_context, alice, monkeypatch):
    page = open_context(alice).new_page()
    page.goto("/t/acme/settings/providers/")
    page.get_by_role("link", name="Add Amazon EC2").click()
    page.get_by_label("Name in Rackrent").fill("AWS, research")
    page.get_by_label("Access key id").fill("AKIAEXAMPLE000000000")
    page.get_by_label("Secret access key").fill("not-a-real-secret-0123456789")
    page.get_by_label("Regions").fill("us-east-1, mars-north-1")
    page.get_by_role("button", name="Verify and save").click()
    expect(page.get_by_text("AWS has no region “mars-north-1”.")).to_be_visible()
    expect(page.get_by_label("Name in Rackrent")).to_have_value("AWS, research")

    # Chromium notes the refusal (422) as a failed resource; it is meant.
    open_context.complaints.clear()

    page.get_by_label("Regions").fill("us-east-1")
    page.get_by_label("Secret access key").fill("not-a-real-secret-0123456789")
    page.get_by_role("button", name="Verify and save").click()
    expect(page.get_by_role("heading", name="Asking the provider…")).to_be_visible()
    # What the worker does meanwhile, at an AWS that is not there.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    run_checks(account=ProviderAccount.objects.get(), now=timezone.now())
    expect(page.locator("#checks li[data-r=no]")).to_contain_text("tries again by itself", timeout=15_000)
    assert "not-a-real-secret" not in page.content()


@pytest.mark.parametrize("width", [360, 1440])
def test_no_page_of_it_scrolls_sideways(server, open_context, alice, width):
    account = ProviderAccount.objects.create(
        team=Team.objects.get(),
        kind="aws",
        name="W" * 80,
        failures=3,
        error_kind="unavailable",
        error_detail="x" * 500,
        options={"regions": "us-east-1"},
    )
    page = open_context(alice, width=width).new_page()
    for address in ("settings/providers/", f"settings/providers/{account.pk}/", "instances/add/", "images/"):
        page.goto(f"/t/acme/{address}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_disconnecting_asks_first(server, open_context, alice):
    account = ProviderAccount.objects.create(team=Team.objects.get(), kind="aws", name="AWS", options={})
    page = open_context(alice).new_page()
    page.goto(f"/t/acme/settings/providers/{account.pk}/")
    page.get_by_role("button", name="Disconnect…").click()
    dialog = page.get_by_role("dialog", name="Disconnect AWS?")
    dialog.get_by_role("button", name="Keep").click()
    account.refresh_from_db()
    assert account.disconnected_at is None
    page.get_by_role("button", name="Disconnect…").click()
    dialog.get_by_role("button", name="Disconnect and forget the key").click()
    expect(page.get_by_text("AWS is disconnected.")).to_be_visible()
    account.refresh_from_db()
    assert account.disconnected_at is not None
