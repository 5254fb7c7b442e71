"""WeCom (企业微信): a group's robot, with its markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected
from fleet.alerts.channels.senders.text import body_of, lookalikes, title_of

# https://developer.work.weixin.qq.com/document/path/90313
RATE_CODES = frozenset({-1, 45009, 45033})
BROKEN_CODES: Mapping[int, str] = {40001: "unauthorized", 40014: "unauthorized", 93000: "gone", 93008: "forbidden"}
MOST_BYTES = 4_096
TOO_FAST_SECONDS = 60.0


class WeCom(HttpSender):
    name = "wecom"
    label = _("WeCom")
    fields = (
        Field("url", _("Webhook URL"), _("the group, Group robot: https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…"), kind="url", secret=True),
    )  # fmt: skip
    # 4,096 bytes a message with everything; 20 messages a minute.
    limits = Limits(title=200, text=MOST_BYTES - 230, per_minute=18, in_bytes=True)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        title = title_of(message, self.limits, lookalikes)
        links = _links(message)
        text = body_of(message, self.limits, lookalikes, reserve=len(links.encode()))
        return Request(config["url"], {"msgtype": "markdown", "markdown": {"content": f"**{title}**\n{text}\n{links}"}})

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        code = answer.get("errcode") if isinstance(answer, dict) else None
        if not isinstance(code, int):
            return not_as_expected(response)
        return Outcome(Result.SENT) if code == 0 else _no(code, str(answer.get("errmsg", "")))


def _links(message: Message) -> str:
    """Links take room from the text: without the acts where they would take half of it."""
    written = [f"[{lookalikes(link.label)}]({link.url})" for link in (message.link, *message.acts)]
    line = " · ".join(written)
    return line if len(line.encode()) < MOST_BYTES / 2 else written[0]


def _no(code: int, said: str) -> Outcome:
    detail = f"{code} {said}"[:200]
    if code in RATE_CODES:
        return Outcome(Result.RETRY, "rate", detail, retry_after_seconds=TOO_FAST_SECONDS)
    if code in BROKEN_CODES:
        return Outcome(Result.BROKEN, BROKEN_CODES[code], detail)
    return Outcome(Result.REFUSED, "refused", detail)
