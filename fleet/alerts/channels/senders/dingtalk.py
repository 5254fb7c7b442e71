"""DingTalk: a group's custom robot, signed, with an action card."""

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
from fleet.alerts.channels.senders.text import body_of, lookalikes, title_of

# https://open.dingtalk.com/document/orgapp/custom-robots-send-group-messages
RATE_CODES = frozenset({130101, 130102, -1, 430104})
BROKEN_CODES: Mapping[int, str] = {
    300001: "unauthorized",
    40014: "unauthorized",
    40035: "unauthorized",
    400013: "gone",
    400101: "unauthorized",
    400102: "gone",
}
# 310000 is all of the robot's own checks; its text says which.
CHECKS = {"sign": "signature", "timestamp": "signature", "keyword": "keyword", "ip": "ip"}
TOO_FAST_SECONDS = 60.0


class DingTalk(HttpSender):
    name = "dingtalk"
    label = _("DingTalk")
    fields = (
        Field("url", _("Webhook URL"), _("the group's settings, Robots, Custom: https://oapi.dingtalk.com/robot/send?access_token=…"), kind="url", secret=True),
        Field("secret", _("Signing secret"), _("of “Additional signature”, as in SEC…"), secret=True, required=False, max_length=200),
    )  # fmt: skip
    # 20,000 bytes a message; 20 messages a minute, then it is silent for ten.
    limits = Limits(title=200, text=12_000, per_minute=18, in_bytes=True)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        title = title_of(message, self.limits, lookalikes)
        text = body_of(message, self.limits, lookalikes, newline="\n\n")
        card = {
            "title": title,
            "text": f"### {title}\n\n{text}",
            "btnOrientation": "0",
            "btns": [{"title": link.label, "actionURL": link.url} for link in (message.link, *message.acts)],
        }
        url = httpx.URL(config["url"])
        if config.get("secret"):
            milliseconds = str(int(message.sent_at.timestamp() * 1_000))
            url = url.copy_merge_params({"timestamp": milliseconds, "sign": signature(milliseconds, config["secret"])})
        return Request(str(url), {"msgtype": "actionCard", "actionCard": card})

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        code = answer.get("errcode") if isinstance(answer, dict) else None
        if not isinstance(code, int):
            return not_as_expected(response)
        return Outcome(Result.SENT) if code == 0 else _no(code, str(answer.get("errmsg", "")))


def signature(milliseconds: str, secret: str) -> str:
    r"""HMAC-SHA256 of "timestamp\nsecret" under the secret; the address carries it percent-encoded."""
    signed = hmac.new(secret.encode(), f"{milliseconds}\n{secret}".encode(), hashlib.sha256).digest()
    return base64.b64encode(signed).decode()


def _no(code: int, said: str) -> Outcome:
    detail = f"{code} {said}"[:200]
    if code in RATE_CODES:
        return Outcome(Result.RETRY, "rate", detail, retry_after_seconds=TOO_FAST_SECONDS)
    if code == 310000:
        check = next((name for word, name in CHECKS.items() if word in said.lower()), "forbidden")
        return Outcome(Result.BROKEN, check, detail)
    if code in BROKEN_CODES:
        return Outcome(Result.BROKEN, BROKEN_CODES[code], detail)
    return Outcome(Result.REFUSED, "refused", detail)
