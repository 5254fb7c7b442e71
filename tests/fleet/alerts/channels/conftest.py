from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
import time_machine
from django.utils import timezone

from fleet.alerts.channels import sending
from fleet.alerts.channels.manage import RouteWords, add_channel
from fleet.alerts.channels.models import Channel
from fleet.alerts.channels.senders.base import Field, Limits, Link, Message, Outcome, Result, Sender
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.sending import claim_due, work_off
from fleet.guard import Guard
from tests.fakes.services import STAND_INS, Service, serving
from tests.fakes.smtp import MailServer, mail_server
from tests.fleet.alerts.conftest import NOON

LOOPBACK = Guard.of(["127.0.0.0/8"])
SENT_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def make_message(**changes: object) -> Message:
    told: dict[str, object] = {
        "key": "batch-1",
        "thread": "alert-7-0",
        "event": "opened",
        "severity": "urgent",
        "severity_word": "Urgent",
        "title": "train-01 lost a GPU",
        "lines": ["GPU 3 fell off the bus."],
        "facts": [("At stake", "$3.00 an hour")],
        "remedy": "Restart the machine.",
        "link": Link("Open the alert", "https://rackrent.example/t/acme/alerts/7/"),
        "acts": [Link("Acknowledge or snooze", "https://rackrent.example/a/signed/")],
        "sent_at": SENT_AT,
    }
    return Message(**{**told, **changes})  # type: ignore[arg-type]


@pytest.fixture
def mail(settings) -> Iterator[MailServer]:
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


@pytest.fixture
def service(request) -> Iterator[Service]:
    """The stand-in of the sender that the test is about: its parameter `kind`."""
    kind = request.getfixturevalue("kind")
    with serving(STAND_INS[kind].judge) as running:
        yield running


class Recorder(Sender):
    """Keeps what it is told to send, and says what the test wants it to."""

    name = "recorder"
    label = "Recorder"
    fields = (Field("url", "URL", secret=True), Field("note", "Note", required=False))
    limits = Limits(title=200, text=4_000, per_minute=60)

    def __init__(self, *, idempotent: bool = False, gathers: bool = True) -> None:
        self.idempotent, self.gathers = idempotent, gathers  # type: ignore[misc]
        self.sent: list[Message] = []
        self.outcomes: list[Outcome | BaseException] = []

    def send(self, message: Message, config: Mapping[str, str], guard: Guard) -> Outcome:
        self.sent.append(message)
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome(Result.SENT, response_id="r1")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    @property
    def titles(self) -> list[str]:
        return [message.title for message in self.sent]


@pytest.fixture
def recorder(monkeypatch) -> Recorder:
    made = Recorder()
    monkeypatch.setitem(SENDERS, "recorder", made)
    return made


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def no_short_pauses(monkeypatch):
    """The clock of these tests stands still: what would be waited out is left to the next beat."""
    monkeypatch.setattr(sending, "SHORT_PAUSE_SECONDS", 0.0)


@pytest.fixture
def make_channel(acme, alice, by):
    def make(name="ops", *, owner=None, kind="recorder", team=acme, **hears) -> Channel:
        return add_channel(
            actor=by(alice), team=team, kind=kind, name=name, owner=owner,
            typed={"url": "https://hooks.example/x"}, hears=RouteWords(**hears),
        )  # fmt: skip

    return make


def work() -> int:
    """What the workers do until there is nothing to do now."""
    sent = 0
    while claims := claim_due(now=timezone.now(), at_once=50):
        sent += sum(work_off(channel, claim) for channel, claim in claims)
    return sent


def states(channel: Channel) -> list[str]:
    return list(channel.deliveries.order_by("pk").values_list("state", flat=True))
