"""Microsoft Teams: a Workflow that starts when a webhook request is received, with an Adaptive Card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message
from fleet.alerts.channels.senders.http import HttpSender, Request
from fleet.alerts.channels.senders.text import body_lines, fitting_lines, title_of

MOST_BUTTONS = 6


class Teams(HttpSender):
    name = "teams"
    label = "Microsoft Teams"
    fields = (
        Field("url", _("Workflow URL"), _("Teams, the channel, Workflows, “Post to a channel when a webhook request is received”"), kind="url", secret=True, max_length=1_000),
    )  # fmt: skip
    # A message may have 28 KB with everything, which Chinese fills three times as fast; four a second.
    limits = Limits(title=600, text=18_000, per_minute=60, in_bytes=True)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        # Text runs know no markdown, so nothing in them can be a link or a mention.
        fitting = fitting_lines(body_lines(message), self.limits, _escaped, newline=json.dumps(_run("")))
        lines = [json.loads(f'"{line}"') for line in fitting]
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [_run(title_of(message, self.limits), weight="Bolder"), *(_run(line) for line in lines)],
            "actions": [
                {"type": "Action.OpenUrl", "title": link.label, "url": link.url}
                for link in (message.link, *message.acts)[:MOST_BUTTONS]
            ],
        }
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return Request(config["url"], {"type": "message", "attachments": [attachment]})


def _escaped(text: str) -> str:
    """As it stands in the JSON, which is what is counted."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _run(text: str, **more: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **more}]}
