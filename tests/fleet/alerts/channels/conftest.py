from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from fleet.alerts.channels.senders.base import Link, Message
from fleet.guard import Guard
from tests.fakes.services import STAND_INS, Service, serving
from tests.fakes.smtp import MailServer, mail_server

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
