"""E-mail against a mail server on loopback."""

from __future__ import annotations

import socket

import pytest

from fleet.alerts.channels.senders.base import Outcome, Result
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.words import FAILURES
from tests.fleet.alerts.channels.conftest import LOOPBACK, make_message

CONFIG = {"to": "anna@example.org, ops@example.org"}


def send(**changes) -> Outcome:
    return SENDERS["email"].send(make_message(**changes), CONFIG, LOOPBACK)


def test_text_and_html_say_the_same(mail):
    outcome = send()
    (sent,) = mail.mails
    text, html = (part.get_content() for part in sent.iter_parts())
    for words in ("GPU 3 fell off the bus.", "Restart the machine.", "https://rackrent.example/a/signed/"):
        assert words in text
        assert words in html
    assert sent["To"] == "anna@example.org, ops@example.org"
    assert outcome == Outcome(Result.SENT, response_id=sent["Message-ID"])


def test_names_from_machines_stay_text(mail):
    assert send(title="x\r\nBcc: all@example.org", lines=["<img src=x onerror=alert(1)>"]).result == Result.SENT
    (sent,) = mail.mails
    assert sent["Bcc"] is None
    assert "<img" not in sent.get_body(("html",)).get_content()


@pytest.mark.parametrize(
    ("replies", "result", "code"),
    [
        ({"RCPT": "550 no such mailbox"}, Result.BROKEN, "recipient"),
        ({"RCPT": "450 mailbox busy"}, Result.RETRY, "recipient"),
        ({"MAIL": "451 try later"}, Result.RETRY, "mail_server"),
        ({"MAIL": "553 sender not allowed"}, Result.RETRY, "mail_server"),
        ({"END": "554 this is spam"}, Result.REFUSED, "refused"),
        ({"END": "452 full"}, Result.RETRY, "mail_server"),
        ({"END": ""}, Result.UNCERTAIN, "no_answer"),
    ],
)
def test_bad_answers(mail, replies, result, code):
    mail.replies = replies
    outcome = send()
    assert (outcome.result, outcome.code) == (result, code)
    assert code in FAILURES
    assert not mail.mails


def test_one_refused_address_of_several_is_said(mail):
    mail.refused = {"ops@example.org": "550 mailbox full"}
    outcome = send()
    assert (outcome.result, outcome.code) == (Result.SENT, "some_recipients")
    assert outcome.detail == "ops@example.org 550"
    assert outcome.code in FAILURES
    assert len(mail.mails) == 1


def test_a_mail_server_that_is_away_is_tried_again(mail, settings):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.EMAIL_PORT = taken.getsockname()[1]
        assert send().result == Result.RETRY


def test_without_a_mail_server_nothing_is_written_to_the_log(settings, capsys):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert send() == Outcome(Result.BROKEN, "no_mail_server")
    assert not capsys.readouterr().out
