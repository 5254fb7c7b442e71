"""Telegram: a bot's sendMessage, in its HTML, with buttons that open links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected, retry_after
from fleet.alerts.channels.senders.text import body_of, telegram, title_of

API = "https://api.telegram.org"
# Of a 400, what says that the chat itself is the trouble.
_OVER = ("chat not found", "bot was kicked", "bot was blocked", "group chat was upgraded", "not enough rights", "user is deactivated")  # fmt: skip


class Telegram(HttpSender):
    name = "telegram"
    label = "Telegram"
    fields = (
        Field("token", _("Bot token"), _("from @BotFather, as in 123456:ABC…"), secret=True, max_length=100),
        Field("chat_id", _("Chat"), _("its number, as in -1001234567890, or @name of a public channel"), max_length=64),
        Field("api_url", _("Bot API"), _("another address only for a Bot API server of your own"), kind="url", default=API, required=False),
    )  # fmt: skip
    # 4,096 characters after its tags are read; 20 messages a minute to one group.
    limits = Limits(title=250, text=3_700, per_minute=18)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        text = f"<b>{title_of(message, self.limits, telegram)}</b>\n{body_of(message, self.limits, telegram)}"
        body = {
            "chat_id": config["chat_id"],
            "text": text,
            "parse_mode": "HTML",
            "link_preview_options": {"is_disabled": True},
            "reply_markup": {
                "inline_keyboard": [[{"text": link.label, "url": link.url}] for link in (message.link, *message.acts)]
            },
        }
        base = (config.get("api_url") or API).rstrip("/")
        return Request(f"{base}/bot{config['token']}/sendMessage", body)

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        if not isinstance(answer, dict) or "ok" not in answer:
            return not_as_expected(response)
        if answer["ok"] is True:
            made = answer.get("result")
            return Outcome(Result.SENT, response_id=str(made.get("message_id", ""))[:200] if isinstance(made, dict) else "")  # fmt: skip
        detail = str(answer.get("description", ""))[:200]
        if answer.get("error_code") == 429:
            return Outcome(Result.RETRY, "rate", detail, retry_after_seconds=retry_after(response, answer))
        return self.refused(answer, detail)

    def refused(self, answer: Any, detail: str) -> Outcome:
        if isinstance(answer, dict) and answer.get("error_code") in {401, 403, 404}:
            return Outcome(Result.BROKEN, "unauthorized", detail)
        if any(words in detail.lower() for words in _OVER):
            return Outcome(Result.BROKEN, "not_found", detail)
        return Outcome(Result.REFUSED, "refused", detail)
