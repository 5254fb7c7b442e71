"""A GPU of the sandbox is lost: the alert, the messages, the link in one of them, and the way back, as people see it in Chromium."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from playwright.sync_api import Page, expect

from fleet.alerts.book import lock_team
from fleet.alerts.channels.manage import add_channel
from fleet.alerts.channels.models import Channel
from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import Alert, Signal
from fleet.inventory.models import GPU, Instance
from fleet.sandbox.readings import Machine, patterns_of
from fleet.teams.audit import Actor
from tests.fakes.services import SECRET
from tests.fakes.smtp import MailServer

from .conftest import on_the_tests_database
from .reporting import Reporter, enrol
from .working import working

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

MEMBER, OFFER = "sb-11e5b4", "sb.a100-40x8"
HOUR = 3600.0
# Longer than the page takes to ask again by itself.
PULSE_MS = 30_000


@dataclass
class Sandboxed:
    """A machine of the sandbox's cast in a team of the tests: what its GPUs do is the sandbox's, through the real ingest."""

    reporter: Reporter
    instance: Instance
    # The sandbox's clock when it looks: an hour before its birth nothing is wrong, at its birth a card is lost.
    ahead: float = field(default=HOUR)

    def report(self) -> None:
        now = time.time()
        machine = Machine(
            MEMBER, "batch-a100-01", OFFER, "img-train-23", 1000, now + self.ahead, now + self.ahead, patterns_of(MEMBER, 8)
        )  # fmt: skip
        self.reporter.send(machine.sample(now))

    def loses_a_gpu(self) -> None:
        self.ahead = 0.0
        self.report()

    def is_repaired(self) -> None:
        self.ahead = HOUR
        self.report()


@pytest.fixture
def sandboxed(server, make_instance) -> Sandboxed:
    from fleet.telemetry.partitions import ensure_partitions

    ensure_partitions(now=timezone.now())
    instance = make_instance(name="batch-a100-01", gpu_model="A100", price_per_hour="14.32")
    instance.gpu_count = 8
    instance.save()
    uuids = Machine(MEMBER, "", OFFER, "", 0, 0.0, 0.0, patterns_of(MEMBER, 8)).uuids
    GPU.objects.bulk_create(GPU(instance=instance, uuid=uuid, index=index) for index, uuid in enumerate(uuids))
    made = Sandboxed(enrol(server.url, instance), instance)
    made.report()
    return made


@pytest.fixture
def channels(acme, alice, server, settings, mail, hook) -> list[Channel]:
    settings.PUBLIC_URL = server.url
    settings.ALLOWED_NETWORKS = ["127.0.0.0/8"]
    actor = Actor(alice, "alice", "page", "192.0.2.7")
    typed: dict[str, dict[str, str]] = {
        "email": {"to": "ops@example.org"},
        "webhook": {"url": f"{hook.url}/hook", "secret": SECRET},
    }
    return [add_channel(actor=actor, team=acme, kind=kind, name=kind, typed=words) for kind, words in typed.items()]


@pytest.fixture
def workers(server, channels, mail, tmp_path) -> Iterator[None]:
    """The processes that look at rules and send, with what its operator has set for this installation."""
    chosen = {
        "PUBLIC_URL": server.url,
        "ALLOWED_NETWORKS": "127.0.0.0/8",
        "EMAIL_HOST": "127.0.0.1",
        "EMAIL_PORT": str(mail.port),
    }
    with working(tmp_path, {**on_the_tests_database(), **chosen}):
        yield


def goes_on(page: Page, sandboxed: Sandboxed, what: Callable[[], bool], *, seconds: float = 60) -> None:
    """The machine reports until it has come to that."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to it"
        sandboxed.report()
        page.wait_for_timeout(500)


def moves_on(team, rows: QuerySet[Any], **changes: datetime) -> None:
    """Time that nobody wants to wait for, between two looks of the worker."""
    with transaction.atomic():
        lock_team(team)
        assert rows.update(**changes)


def subjects(mail: MailServer) -> list[str]:
    return [str(message["Subject"]) for message in mail.mails]


def link_in(mail: MailServer, url: str) -> str:
    body = mail.mails[-1].get_body(("plain",))
    assert body is not None
    found = re.search(rf"{re.escape(url)}(/a/\S+)", body.get_content())
    assert found, body.get_content()
    return found[1]


def line(page: Page):
    return page.locator(".group", has_text="batch-a100-01 lost a GPU")


@pytest.mark.timeout(400)
def test_a_lost_gpu_from_the_alert_to_its_end(sandboxed, channels, acme, alice, mail, hook, server, workers, open_context):  # fmt: skip
    """Nothing is called by hand: beat, the workers and the web process do all of it."""
    page = open_context(alice).new_page()
    page.goto("/t/acme/alerts/")
    expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()

    # It is lost: both channels are told, and the open page shows it by itself.
    sandboxed.loses_a_gpu()
    goes_on(page, sandboxed, lambda: bool(mail.mails and hook.accepted()))
    assert len(mail.mails) == len(hook.accepted()) == 1
    assert "batch-a100-01 lost a GPU" in subjects(mail)[0]
    assert b"gpu.lost" in hook.taken[0].raw
    expect(line(page)).to_be_visible(timeout=PULSE_MS)
    expect(line(page)).to_contain_text("$1.79/h")
    expect(line(page)).to_contain_text("GPU 5: the driver cannot read it")
    expect(page.locator("#count-alerts")).to_have_text("1")

    # Whoever got the mail snoozes it without signing in; looking alone changes nothing.
    stranger = open_context().new_page()
    stranger.goto(link_in(mail, server.url))
    alert = Alert.objects.get()
    assert not alert.is_snoozed
    stranger.get_by_role("button", name="Snooze for 1 hour").click()
    expect(stranger.locator(".banner")).to_contain_text("Snoozed until")
    expect(page.locator("#tab-snoozed")).to_have_text("Snoozed 1", timeout=PULSE_MS)
    expect(line(page)).to_have_count(0)

    # The hour is over and the card still gone: it comes back, and people are told.
    moves_on(acme, Alert.objects.all(), snoozed_until=timezone.now() + timedelta(seconds=2))
    goes_on(page, sandboxed, lambda: any("Back from its snooze" in subject for subject in subjects(mail)))
    expect(line(page)).to_be_visible(timeout=PULSE_MS)

    # The machine was restarted and the evidence lasts: it closes by itself, and both channels hear of the end.
    sandboxed.is_repaired()
    goes_on(page, sandboxed, Signal.objects.filter(clear_since__isnull=False).exists)
    moves_on(acme, Signal.objects.all(), clear_since=timezone.now() - timedelta(minutes=4))
    goes_on(page, sandboxed, lambda: subjects(mail)[-1].startswith("Resolved") and b"resolved" in hook.taken[-1].raw)
    assert Alert.objects.get().closed_why == "evidence"
    expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible(timeout=PULSE_MS)
    page.locator("#tab-closed").click()
    expect(line(page)).to_contain_text("in all")


def test_a_refresh_takes_nothing_out_of_ones_hands(sandboxed, acme, alice, open_context):
    sandboxed.loses_a_gpu()
    evaluate_team(team=acme, now=timezone.now())
    page = open_context(alice).new_page()
    page.goto("/t/acme/alerts/")
    line(page).locator("[data-pick]").check()
    line(page).locator("details.sig > summary").click()
    line(page).get_by_role("link", name="batch-a100-01 lost a GPU").focus()
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        page.evaluate("window.htmx.trigger(document.getElementById('inbox'), 'pulse')")
    expect(line(page).locator("[data-pick]")).to_be_checked()
    expect(line(page).locator("details.sig")).to_have_attribute("open", "")
    expect(line(page).get_by_role("link", name="batch-a100-01 lost a GPU")).to_be_focused()
    expect(page.locator("#bulk")).to_be_visible()


def test_an_alert_is_acknowledged_with_the_keyboard_alone(sandboxed, acme, alice, open_context):
    sandboxed.loses_a_gpu()
    evaluate_team(team=acme, now=timezone.now())
    page = open_context(alice).new_page()
    page.goto("/t/acme/alerts/")
    line(page).get_by_role("link", name="batch-a100-01 lost a GPU").focus()
    page.keyboard.press("a")
    page.keyboard.type("on my way")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_have_text("Acknowledged: reminders stop.")
    expect(line(page)).to_contain_text("“on my way”")
    alert = Alert.objects.get()
    assert (alert.acknowledged_by, alert.acknowledged_note) == (alice, "on my way")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    expect(page.locator("#tab-snoozed")).to_have_text("Snoozed 1")


def test_it_works_without_scripts(sandboxed, acme, alice, open_context):
    sandboxed.loses_a_gpu()
    evaluate_team(team=acme, now=timezone.now())
    page = open_context(alice, java_script_enabled=False).new_page()
    page.goto("/t/acme/alerts/")
    line(page).locator("[data-pick]").check()
    page.locator("#bulk").get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status").first).to_contain_text("Acknowledged")
    expect(line(page)).to_contain_text("Acknowledged by alice")
