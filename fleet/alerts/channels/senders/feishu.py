"""Feishu and Lark: a group's custom bot, signed, with a card whose texts are plain."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected
from fleet.alerts.channels.senders.text import body_of, title_of

TEMPLATES = {"urgent": "red", "warning": "orange", "note": "blue"}
# https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot
RATE_CODES = frozenset({9499, 11232, 99991400})
BROKEN_CODES: Mapping[int, str] = {
    19001: "not_found",
    19002: "not_found",
    19021: "signature",
    19022: "ip",
    19024: "keyword",
    19036: "not_found",
}


class Feishu(HttpSender):
    name = "feishu"
    label = _("Feishu / Lark")
    fields = (
        Field("url", _("Webhook URL"), _("the group's settings, Bots, Custom bot: https://open.feishu.cn/… or https://open.larksuite.com/…"), kind="url", secret=True),
        Field("secret", _("Signing secret"), _("of “Set signature verification”; empty where it is switched off"), secret=True, required=False, max_length=200),
    )  # fmt: skip
    # A request may have 20 KB; 100 messages a minute, 5 a second.
    limits = Limits(title=300, text=12_000, per_minute=90, in_bytes=True)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        colour = "green" if message.is_resolved else TEMPLATES.get(message.severity, "blue")
        card = {
            "config": {"wide_screen_mode": True},
            "header": {"template": colour, "title": _plain(title_of(message, self.limits))},
            "elements": [
                {"tag": "div", "text": _plain(body_of(message, self.limits))},
                {"tag": "action", "actions": [_button(link.label, link.url) for link in (message.link, *message.acts)]},
            ],
        }
        body: dict[str, Any] = {"msg_type": "interactive", "card": card}
        if config.get("secret"):
            seconds = str(int(message.sent_at.timestamp()))
            body |= {"timestamp": seconds, "sign": signature(seconds, config["secret"])}
        return Request(config["url"], body)

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        code = answer.get("code", answer.get("StatusCode")) if isinstance(answer, dict) else None
        if not isinstance(code, int):
            return not_as_expected(response)
        return Outcome(Result.SENT) if code == 0 else _no(code, str(answer.get("msg", "")))

    def refused(self, answer: Any, detail: str) -> Outcome:
        code = answer.get("code") if isinstance(answer, dict) else None
        return _no(code, detail) if isinstance(code, int) else super().refused(answer, detail)


def signature(seconds: str, secret: str) -> str:
    r"""HMAC-SHA256 of nothing, under "timestamp\nsecret"."""
    return base64.b64encode(hmac.new(f"{seconds}\n{secret}".encode(), b"", hashlib.sha256).digest()).decode()


def _no(code: int, said: str) -> Outcome:
    detail = f"{code} {said}"[:200]
    if code in RATE_CODES:
        return Outcome(Result.RETRY, "rate", detail)
    if code in BROKEN_CODES:
        return Outcome(Result.BROKEN, BROKEN_CODES[code], detail)
    return Outcome(Result.REFUSED, "refused", detail)


def _plain(text: str) -> dict[str, str]:
    return {"tag": "plain_text", "content": text}


def _button(label: str, url: str) -> dict[str, Any]:
    return {"tag": "button", "text": _plain(label), "type": "default", "url": url}
