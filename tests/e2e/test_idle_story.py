"""A forgotten notebook of the sandbox, from the candidate to what its stop saved, at a provider that lies: mail, webhook, links and pages in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from fleet.alerts.channels.manage import add_channel
from fleet.formats import money_text
from fleet.idle.savings.booking import grow_savings
from fleet.idle.shutdown.models import IdleSaving
from fleet.inventory.models import Hold, Instance, ProviderAccount
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.team import adopt_machines, open_sandbox
from fleet.teams.audit import Actor
from fleet.teams.models import Team, User
from fleet.telemetry.partitions import ensure_partitions
from tests.fakes.services import SECRET, Service
from tests.fakes.smtp import MailServer
from tests.fleet.sandbox.loopback import serving

from .acting import poll
from .forgotten import NAME, Notebook, ProviderClock, forgotten_notebook

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

PRICE_PER_HOUR = Decimal("0.44")
ACCEPTS_AND_DOES_NOTHING, BEGINS_AND_COMES_BACK = "still_running", "forgets"


@pytest.fixture
def notebook(server, tmp_path, monkeypatch) -> Iterator[Notebook]:
    """Of the sandbox's team, with the policies that it comes with: idle for 30 minutes, stopped 10 minutes after a warning."""
    ensure_partitions(now=timezone.now())
    clock = ProviderClock()
    desk = Desk(tmp_path / "provider.json", clock)
    api = SandboxAPI(desk)
    with serving(api) as port:
        monkeypatch.setenv("SANDBOX_PORT", str(port))
        monkeypatch.setattr("fleet.inventory.operations.requests.hurry", lambda _pk: None)
        account = open_sandbox(key=desk.full_key)
        # Nobody may act on the sandbox until an account says so.
        ProviderAccount.objects.update(monitor_only=False)
        poll(account)
        adopt_machines(account=account)
        made = forgotten_notebook(url=server.url, api=api, clock=clock)
        yield made
        made.close()


@pytest.fixture
def channels(notebook, server, settings, mail, hook) -> None:
    settings.PUBLIC_URL = server.url
    settings.ALLOWED_NETWORKS = ["127.0.0.0/8"]
    typed = {"email": {"to": "ops@example.org"}, "webhook": {"url": f"{hook.url}/hook", "secret": SECRET}}
    for kind, words in typed.items():
        add_channel(
            actor=Actor.system("tests"), team=Team.objects.get(slug="sandbox"), kind=kind, name=kind, typed=words
        )


@pytest.fixture
def alice() -> User:
    """Everybody who signs in may look at the sandbox."""
    return User.objects.create_user("alice", "alice@example.org")


def subjects(mail: MailServer) -> list[str]:
    return [str(message["Subject"]) for message in mail.mails]


def text_of(mail: MailServer) -> str:
    body = mail.mails[-1].get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def link_to_keep(mail: MailServer, url: str) -> str:
    found = re.search(rf"Keep it 1 hour: *\n?{re.escape(url)}(/a/\S+)", text_of(mail))
    assert found, text_of(mail)
    return found[1]


def is_told(mail: MailServer, hook: Service, words: str) -> None:
    """Both channels have taken it, as their last message."""
    assert NAME in subjects(mail)[-1]
    assert words in f"{subjects(mail)[-1]}\n{text_of(mail)}", (subjects(mail), text_of(mail))
    assert words in hook.accepted()[-1].raw.decode(), hook.accepted()[-1].raw.decode()


def under_way(page: Page):
    return page.locator("#stops li", has_text=NAME)


@pytest.mark.timeout(400)
def test_a_forgotten_notebook_at_a_lying_provider(notebook, channels, alice, mail, hook, server, open_context):
    page = open_context(alice).new_page()
    page.goto("/t/sandbox/idle/")
    expect(page.locator("#stops li")).to_have_count(0)

    # Nothing happens on it: both channels hear of it before anything else is done.
    notebook.until("grace")
    is_told(mail, hook, "is idle and is to be stopped")
    page.reload()
    expect(under_way(page)).to_contain_text("Forgotten notebooks")
    expect(under_way(page).get_by_role("timer")).to_be_visible()

    somebody_keeps_it(notebook, link_to_keep(mail, server.url), open_context().new_page())
    is_told(mail, hook, "called off")
    page.reload()
    expect(under_way(page)).to_contain_text("Left alone")

    # The hour is over, and nothing has happened on it: a warning of its own, of which nobody says anything.
    told = len(mail.mails)
    notebook.waits(rests_until=timezone.now())
    notebook.until("grace")
    assert len(mail.mails) == told + 1
    is_told(mail, hook, "is idle and is to be stopped")
    notebook.waits(deadline=timezone.now())

    it_is_lied_to(notebook)
    is_told(mail, hook, "was told to stop and runs on")
    is_told(mail, hook, "burnt since")
    page.reload()
    expect(under_way(page)).to_contain_text("not stopped")
    expect(under_way(page)).to_contain_text("since it was ordered")

    it_is_told_again(notebook, mail)
    is_told(mail, hook, f"${PRICE_PER_HOUR} burnt since")
    it_begins_and_comes_back(notebook)

    # Asked once more, the provider tells the truth.
    notebook.is_asked_again()
    stop = notebook.until("stopped")
    assert (stop.operation.state, Instance.objects.get(name=NAME).state) == ("proved", "stopped")
    is_told(mail, hook, "stopped: its provider showed it")
    assert not Hold.objects.exists()
    what_it_saved_is_shown(page)


def somebody_keeps_it(notebook: Notebook, link: str, page: Page) -> None:
    """For an hour, by the link in the mail, without signing in. Looking changes nothing; saying it acts once."""
    page.goto(link)
    page.reload()
    assert not notebook.stop.snoozed_until
    page.get_by_role("button", name="Keep it 1 hour").click()
    expect(page.locator(".banner")).to_contain_text("It is kept.")
    assert notebook.stop.snoozes == 1
    notebook.until("cancelled")
    page.goto(link)
    expect(page.get_by_role("button", name="Keep it 1 hour")).to_have_count(0)
    assert notebook.stop.snoozes == 1


def it_is_lied_to(notebook: Notebook) -> None:
    """The provider accepts the stop, does nothing, and bills on: that is no stop, and after ten minutes a failed one."""
    notebook.lies(**{ACCEPTS_AND_DOES_NOTHING: 1_000})
    notebook.until("verifying")
    for _turn in range(4):
        notebook.turn()
    assert notebook.runs_at_its_provider()
    assert notebook.stop.stage == "verifying"
    assert not IdleSaving.objects.exists()
    notebook.waits(since=timezone.now() - timedelta(minutes=10))
    notebook.until("failed")


def it_is_told_again(notebook: Notebook, mail: MailServer) -> None:
    """An hour later, with what that hour has burnt."""
    hour_ago = timezone.now() - timedelta(hours=1)
    notebook.waits(told_at=hour_ago, ordered_at=hour_ago)
    notebook.stop.events.filter(kind="stopping").update(at=hour_ago)
    told = len(mail.mails)
    notebook.turn()
    notebook.turn()
    assert len(mail.mails) == told + 1


def it_begins_and_comes_back(notebook: Notebook) -> None:
    """Asked again, it begins to stop, and what was before comes back: no proof, and nothing saved."""
    notebook.lies(**{BEGINS_AND_COMES_BACK: 1})
    notebook.is_asked_again()
    assert not notebook.runs_at_its_provider()
    for _turn in range(4):
        notebook.turn()
    assert notebook.runs_at_its_provider()
    assert notebook.stop.stage != "stopped"
    assert not IdleSaving.objects.exists()


def what_it_saved_is_shown(page: Page) -> None:
    """On the page of costs, as much as an hour of it costs less its disk."""
    saving = IdleSaving.objects.get()
    assert saving.price_per_hour is not None
    assert 0 < saving.price_per_hour < PRICE_PER_HOUR
    IdleSaving.objects.update(since=timezone.now() - timedelta(hours=1))
    grow_savings(now=timezone.now())
    page.goto("/t/sandbox/costs/")
    stopped = page.locator("#stopped")
    expect(stopped).to_contain_text("saved by stopping")
    expect(stopped.get_by_role("link", name=NAME)).to_be_visible()
    expect(stopped).to_contain_text(money_text(IdleSaving.objects.get().amount, "USD"))
