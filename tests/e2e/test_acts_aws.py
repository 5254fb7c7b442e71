"""A machine of EC2 (moto), from its launch to its end, in Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from fleet.inventory.accounts import create_account
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor
from fleet.teams.models import Membership, Role, Team, User
from tests.fleet.conftest import AMI, AWS_OPTIONS, P4D
from tests.fleet.moto_peer import moto_server

from .acting import poll, whole_life

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def bob() -> User:
    user = User.objects.create_user("bob", "bob@example.org")
    Membership.objects.create(team=Team.objects.create(name="Acme", slug="acme"), user=user, role=Role.OPERATOR)
    return user


@pytest.fixture
def moto(monkeypatch) -> Iterator[str]:
    """For the worker alone, which is this process: the web process speaks to no provider."""
    with moto_server() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield address


@pytest.fixture
def account(bob, moto) -> ProviderAccount:
    account = create_account(
        actor=Actor(bob, "bob", "page"),
        team=Team.objects.get(),
        kind="aws",
        name="AWS",
        values={**AWS_OPTIONS, "regions": "us-east-1"},
        monitor_only=False,
    )
    poll(account)
    return account


def test_from_launch_to_end(server, open_context, bob, account):
    def order(page: Page) -> None:
        page.get_by_label("Account", exact=True).select_option(label="AWS")
        page.get_by_label("Type", exact=True).fill(P4D)
        page.get_by_label("Region", exact=True).fill("us-east-1")
        page.get_by_label("Name", exact=True).fill("try-01")
        page.get_by_label("Image", exact=True).fill(AMI)
        page.get_by_label("Startup script", exact=True).fill("echo hello")

    whole_life(open_context(bob).new_page(), lambda: None, order=order, stop_loses=True)
