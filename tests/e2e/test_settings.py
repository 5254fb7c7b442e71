"""Settings and the pages before a team is known, in Chromium: with keyboard and pointer, between two people, on a small phone."""

from __future__ import annotations

import re

import pytest
from django.test import override_settings
from playwright.sync_api import expect

from fleet.teams.audit import Actor
from fleet.teams.models import Membership, Role, Scope, Team, User
from fleet.teams.tokens import create_token

from .waiting import connected

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

TABS = ("", "members/", "projects/", "tokens/", "audit/")


@pytest.fixture
def team(acme: Team) -> Team:
    return acme


@pytest.fixture
def member(team: Team):
    def make(name: str, role: Role) -> User:
        user = User.objects.create_user(name, f"{name}@example.org")
        Membership.objects.create(team=team, user=user, role=role)
        return user

    return make


@pytest.fixture
def alice(member):
    return member("alice", Role.ADMIN)


@pytest.mark.parametrize("width", [360, 1440])
def test_no_tab_scrolls_sideways(server, open_context, alice, team, width):
    create_token(actor=Actor.system("test"), team=team, name="W" * 80, scope=Scope.READ)
    page = open_context(alice, width=width).new_page()
    for address in [*(f"/t/acme/settings/{tab}" for tab in TABS), "/account/", "/teams/"]:
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_a_question_before_a_loss_is_answered_by_keyboard(server, open_context, alice, member):
    member("bob", Role.OPERATOR)
    page = open_context(alice).new_page()
    page.goto("/t/acme/settings/members/")
    opener = page.get_by_role("button", name="Remove…")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Remove bob from the team?")
    expect(dialog.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("bob@example.org")).to_have_count(0)
    assert not Membership.objects.filter(user__username="bob").exists()


def test_who_is_removed_while_looking_hears_and_sees_nothing_more(server, open_context, alice, member, make_instance):
    make_instance(gpus=1)
    looking = open_context(member("bob", Role.OPERATOR)).new_page()
    looking.goto("/t/acme/instances/")
    connected(looking)
    page = open_context(alice).new_page()
    page.goto("/t/acme/settings/members/")
    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("button", name="Remove from the team").click()
    connected(looking, "off")
    looking.reload()
    expect(looking.get_by_role("heading", name="There is nothing at this address")).to_be_visible()
    # The browser itself calls an answer of 404 an error.
    open_context.complaints.clear()


def test_keeping_changes_nothing(server, open_context, alice, member):
    member("bob", Role.OPERATOR)
    page = open_context(alice).new_page()
    page.goto("/t/acme/settings/members/")
    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert Membership.objects.filter(user__username="bob").exists()


def test_an_invitation_goes_from_one_browser_to_another(server, open_context, alice):
    admin = open_context(alice).new_page()
    admin.goto("/t/acme/settings/members/")
    admin.get_by_label("Role", exact=True).select_option("operator")
    admin.get_by_role("button", name="Make a link").click()
    link = admin.locator(".once code").inner_text()
    guest = open_context(width=390, locale="zh-CN").new_page()
    guest.goto(link)
    expect(guest).to_have_url(re.compile(r"/join/$"))
    guest.get_by_label("用户名").fill("dora")
    guest.get_by_label("密码").fill("a long enough one")
    guest.get_by_role("button", name="创建账户并加入").click()
    expect(guest).to_have_url(re.compile(r"/t/acme/$"))
    assert Membership.objects.get(user__username="dora").role == Role.OPERATOR


def test_the_team_is_switched_from_any_page(server, open_context, alice):
    other = Team.objects.create(name="Bolt", slug="bolt")
    Membership.objects.create(team=other, user=alice, role=Role.VIEWER)
    page = open_context(alice).new_page()
    page.goto("/t/acme/settings/projects/")
    page.locator(".switcher summary").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Bolt").click()
    expect(page).to_have_url(re.compile(r"/t/bolt/$"))


def test_a_typed_password_can_be_looked_at(server, open_context):
    page = open_context().new_page()
    page.goto("/login/")
    password = page.get_by_label("Password")
    password.fill("typed")
    page.get_by_role("button", name="Show").click()
    expect(password).to_have_attribute("type", "text")
    page.get_by_role("button", name="Hide").click()
    expect(password).to_have_attribute("type", "password")


def test_a_wrong_password_is_said_at_the_field(server, open_context, team):
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.PBKDF2PasswordHasher"]):
        User.objects.create_user("vera", password="correct horse")
    window = open_context()
    page = window.new_page()
    page.goto("/login/")
    page.get_by_label("E-mail or user name").fill("vera")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text(re.compile("4 tries left"))
    expect(page.get_by_label("Password")).to_have_attribute("aria-invalid", "true")
    # The browser itself calls an answer of 422 an error.
    open_context.complaints.clear()
