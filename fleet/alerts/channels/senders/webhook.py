"""A webhook of one's own: JSON, signed as the Standard Webhooks specification says (https://www.standardwebhooks.com), so that its libraries check it.

webhook-id is the same in every attempt: whoever has seen it leaves the message out. webhook-timestamp is when this attempt was made;
refuse what is further than five minutes from your clock, and what is sent again later is nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message
from fleet.alerts.channels.senders.http import HttpSender, Request, as_json
from fleet.alerts.channels.senders.text import body_of, title_of

PREFIX = "whsec_"


class Webhook(HttpSender):
    name = "webhook"
    label = _("Webhook")
    fields = (
        Field("url", _("Address"), _("it gets a POST with JSON"), kind="url", secret=True, max_length=1_000),
        Field("secret", _("Signing secret"), _("16 signs or more; whsec_… where your library made it"), secret=True, max_length=200),
    )  # fmt: skip
    limits = Limits(title=500, text=20_000, per_minute=120)
    idempotent = True

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        content = as_json({"type": f"alert.{message.event}", "timestamp": message.sent_at.isoformat(), "data": self._data(message)})  # fmt: skip
        seconds = str(int(message.sent_at.timestamp()))
        headers = {
            "webhook-id": message.key,
            "webhook-timestamp": seconds,
            "webhook-signature": signature(message.key, seconds, content, config["secret"]),
        }
        return Request(config["url"], content, headers)

    def _data(self, message: Message) -> dict[str, Any]:
        return {
            "alert": message.thread,
            "severity": message.severity,
            "resolved": message.is_resolved,
            "title": title_of(message, self.limits),
            "text": body_of(message, self.limits),
            "remedy": message.remedy,
            "url": message.link.url,
            "links": [{"label": link.label, "url": link.url} for link in message.acts],
            "language": message.language,
            **message.data,
        }


def signature(key: str, seconds: str, content: bytes, secret: str) -> str:
    signed = hmac.new(_key(secret), f"{key}.{seconds}.".encode() + content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _key(secret: str) -> bytes:
    """What follows whsec_ is base64; any other secret is its own bytes."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        return secret.encode()
