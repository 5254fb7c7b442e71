"""Links in messages: they act without sign-in, so they are signed, end soon, and name one alert as one channel was told of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core import signing
from django.urls import reverse

from fleet.alerts.channels.models import Channel
from fleet.alerts.models import Alert
from fleet.teams.models import Team

SALT = "fleet.alerts.channels.links"
VALID_FOR = timedelta(days=3)


class LinkError(ValueError):
    """`code`: old (it has ended) or wrong (nobody signed it)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Signed:
    """`course`: how often the alert had been opened again. `nonce`: the message; each of its acts is done once."""

    alert: int
    course: int
    channel: int
    nonce: str


def sign(what: Signed) -> str:
    return signing.dumps([what.alert, what.course, what.channel, what.nonce], salt=SALT)


def unsign(token: str) -> Signed:
    """Raises LinkError."""
    try:
        alert, course, channel, nonce = signing.loads(token, salt=SALT, max_age=VALID_FOR)
    except signing.SignatureExpired:
        raise LinkError("old") from None
    except (signing.BadSignature, ValueError, TypeError):
        raise LinkError("wrong") from None
    return Signed(alert, course, channel, nonce)


def act_url(channel: Channel, alert: Alert, *, key: str) -> str:
    token = sign(Signed(alert.pk, alert.reopened, channel.pk, f"{key[:20]}-{alert.pk}"[:32]))
    return base_url() + reverse("alert_link", args=[token])


def page_url(about: Alert | Team) -> str:
    """Where one signed in reads more."""
    if isinstance(about, Team):
        return base_url() + reverse("alerts", args=[about.slug])
    return base_url() + reverse("alert", args=[about.team.slug, about.pk])


def base_url() -> str:
    return str(settings.PUBLIC_URL or settings.WEB_URL)


def site_name() -> str:
    """The host that this installation is known by: what names of ours are unique within."""
    return urlsplit(base_url()).hostname or "localhost"
