"""E-mail, by Django's own mail: the same in plain text and in HTML."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.core.mail.message import sanitize_address
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result, Sender
from fleet.alerts.channels.senders.text import body_of, title_of
from fleet.guard import Guard

MOST_ADDRESSES = 10


class Email(Sender):
    name = "email"
    label = _("E-mail")
    fields = (
        Field("to", _("To"), _("one address or several, with commas between them"), kind="emails", max_length=1_000),
    )  # fmt: skip
    limits = Limits(title=180, text=20_000, per_minute=20)

    def send(self, message: Message, config: Mapping[str, str], guard: Guard) -> Outcome:
        return attempt(self._mail(message, addresses(config["to"])))

    def _mail(self, message: Message, to: list[str]) -> EmailMultiAlternatives:
        host = sender_host()
        headers = {"Message-ID": f"<{message.key}@{host}>", "Auto-Submitted": "auto-generated"}
        if message.thread:
            # Mail programs put all of an alert into one conversation.
            headers["References"] = f"<{message.thread}@{host}>"
        title = title_of(message, self.limits)
        links = "\n".join(f"{link.label}: {link.url}" for link in (message.link, *message.acts))
        text = f"{body_of(message, self.limits)}\n\n{links}\n"
        mail = EmailMultiAlternatives(title, text, to=to, headers=headers)
        mail.attach_alternative(render_to_string("alerts/channels/mail.html", {"message": message}), "text/html")
        return mail


def attempt(mail: EmailMultiAlternatives) -> Outcome:
    """Hands it to the mail server, once; it has a Message-ID. Raises nothing: what goes wrong is an outcome."""
    if settings.EMAIL_BACKEND.endswith(".console.EmailBackend"):
        # Its log would hold the links that act without sign-in.
        return Outcome(Result.BROKEN, "no_mail_server")
    try:
        refused = deliver(mail)
    except smtplib.SMTPException as error:
        return _failed(error)
    except TimeoutError as error:
        return Outcome(Result.UNCERTAIN, "no_answer", type(error).__name__)
    except (OSError, UnicodeError) as error:
        return Outcome(Result.RETRY, "unreachable", type(error).__name__)
    code, detail = ("some_recipients", _refusals(refused)) if refused else ("", "")
    return Outcome(Result.SENT, code, detail, response_id=mail.extra_headers["Message-ID"][:200])


def sender_host() -> str:
    """What Message-IDs of ours are unique within."""
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"


def deliver(mail: EmailMultiAlternatives) -> Mapping[str, tuple[int, bytes]]:
    """The addresses that were refused while others were taken; Django's own sending keeps silent about them. Raises what smtplib does."""
    connection = get_connection()
    if not isinstance(connection, EmailBackend):
        mail.send()
        return {}
    connection.open()
    try:
        assert connection.connection is not None
        sender = sanitize_address(parseaddr(mail.from_email)[1], "utf-8")
        to = [sanitize_address(address, "utf-8") for address in mail.recipients()]
        refused: Mapping[str, tuple[int, bytes]] = connection.connection.sendmail(
            sender,
            to,
            mail.message().as_bytes(linesep="\r\n"),  # type: ignore[call-arg]  # of Django's own message
        )
        return refused
    finally:
        connection.close()


def _refusals(refused: Mapping[str, tuple[int, bytes]]) -> str:
    return ", ".join(f"{address} {code}" for address, (code, _said) in refused.items())


def addresses(typed: str) -> list[str]:
    return [part for part in (word.strip() for word in typed.replace(";", ",").split(",")) if part]


def _failed(error: smtplib.SMTPException) -> Outcome:
    detail = type(error).__name__
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = {code for code, _said in error.recipients.values()}
        lasting = bool(codes) and min(codes) >= 500
        return Outcome(Result.BROKEN if lasting else Result.RETRY, "recipient", f"{detail} {sorted(codes)}")
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return Outcome(Result.UNCERTAIN, "no_answer", detail)
    if isinstance(error, smtplib.SMTPAuthenticationError | smtplib.SMTPSenderRefused):
        # The installation's mail server, for all channels: its operator mends it, and what waits goes out then.
        return Outcome(Result.RETRY, "mail_server", f"{detail} {error.smtp_code}")
    if isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500:
        return Outcome(Result.REFUSED, "refused", f"{detail} {error.smtp_code}")
    return Outcome(Result.RETRY, "mail_server", detail)
