"""Slack: an incoming webhook, with blocks. The texts are plain; only the fallback line is markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected, plain_detail
from fleet.alerts.channels.senders.text import body_of, slack, title_of

# https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/: what it answers when the webhook itself is over.
_OVER = {"invalid_token", "no_service", "no_service_id", "no_team", "team_disabled", "channel_not_found", "channel_is_archived", "action_prohibited", "posting_to_general_channel_denied", "user_not_found"}  # fmt: skip
MOST_BUTTONS = 5


class Slack(HttpSender):
    name = "slack"
    label = "Slack"
    fields = (
        Field("url", _("Webhook URL"), _("Slack, your app, Incoming Webhooks: https://hooks.slack.com/services/…"), kind="url", secret=True),
    )  # fmt: skip
    # A header block takes 150 characters, a section 3,000; one message a second.
    limits = Limits(title=150, text=3_000, per_minute=50)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        title = title_of(message, self.limits)
        buttons = [_button(link.label, link.url) for link in (message.link, *message.acts)[:MOST_BUTTONS]]
        blocks = [
            {"type": "header", "text": _plain(title)},
            {"type": "section", "text": _plain(body_of(message, self.limits) or title)},
            {"type": "actions", "elements": buttons},
        ]
        return Request(config["url"], {"text": slack(title), "blocks": blocks, "unfurl_links": False})

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        """It answers "ok" in plain text; gateways in front of it answer pages."""
        if isinstance(answer, dict) and answer.get("ok") is False:
            return self.refused(answer, str(answer.get("error", "")))
        says = response.headers.get("content-type", "")
        return not_as_expected(response) if "html" in says else Outcome(Result.SENT)

    def refused(self, answer: Any, detail: str) -> Outcome:
        if any(word in detail for word in _OVER):
            return Outcome(Result.BROKEN, "gone", detail)
        return Outcome(Result.REFUSED, "refused", detail or plain_detail(answer, ""))


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _button(label: str, url: str) -> dict[str, Any]:
    return {"type": "button", "text": _plain(label[:75]), "url": url}
