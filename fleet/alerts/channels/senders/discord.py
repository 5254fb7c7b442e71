"""Discord: a channel's webhook, with an embed. Mentions are switched off for the whole message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected
from fleet.alerts.channels.senders.text import body_of, markdown, title_of

COLOURS = {"urgent": 0xC0362C, "warning": 0xC98A1B, "note": 0x6B7280}
RESOLVED_COLOUR = 0x2E8B57


class Discord(HttpSender):
    name = "discord"
    label = "Discord"
    fields = (
        Field("url", _("Webhook URL"), _("Discord, the channel's settings, Integrations, Webhooks: https://discord.com/api/webhooks/…"), kind="url", secret=True),
    )  # fmt: skip
    # An embed's title takes 256 characters, its description 4,096, all of it 6,000; 30 messages a minute.
    limits = Limits(title=256, text=4_096, per_minute=28)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        links = " · ".join(f"[{markdown(link.label)}](<{link.url}>)" for link in (message.link, *message.acts))
        body = body_of(message, self.limits, markdown, reserve=len(links) + 2)
        embed = {
            "title": title_of(message, self.limits, markdown),
            "description": f"{body}\n\n{links}",
            "url": message.link.url,
            "color": RESOLVED_COLOUR if message.is_resolved else COLOURS.get(message.severity, COLOURS["note"]),
        }
        url = httpx.URL(config["url"]).copy_merge_params({"wait": "true"})
        return Request(str(url), {"embeds": [embed], "allowed_mentions": {"parse": []}})

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        """With wait=true it answers with the message that it made."""
        if not isinstance(answer, dict) or "id" not in answer:
            return not_as_expected(response)
        return Outcome(Result.SENT, response_id=str(answer["id"])[:200])
