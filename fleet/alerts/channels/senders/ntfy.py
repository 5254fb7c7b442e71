"""ntfy: a topic of ntfy.sh or of a server of one's own, published as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected
from fleet.alerts.channels.senders.text import body_of, title_of

SERVER = "https://ntfy.sh"
PRIORITIES = {"urgent": 5, "warning": 4, "note": 2}
MOST_BUTTONS = 3


class Ntfy(HttpSender):
    name = "ntfy"
    label = "ntfy"
    fields = (
        Field("topic", _("Topic"), _("whoever knows it can read along: choose one that nobody guesses; letters, digits, - and _"), secret=True, max_length=64, pattern=r"[-_A-Za-z0-9]{1,64}"),
        Field("server", _("Server"), _("its address, without the topic"), kind="url", default=SERVER, required=False),
        Field("token", _("Access token"), _("only where the server asks for one: tk_…"), secret=True, required=False, max_length=200),
    )  # fmt: skip
    # A longer message than 4,096 bytes becomes a file; 60 requests at once, then one in 5 s.
    limits = Limits(title=200, text=3_800, per_minute=12, in_bytes=True)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        body = {
            "topic": config["topic"],
            "title": title_of(message, self.limits),
            "message": body_of(message, self.limits),
            "priority": 3 if message.is_resolved else PRIORITIES.get(message.severity, 3),
            "tags": ["white_check_mark"] if message.is_resolved else ["warning"],
            "click": message.link.url,
            "actions": [
                {"action": "view", "label": link.label, "url": link.url}
                for link in (message.link, *message.acts)[:MOST_BUTTONS]
            ],
        }
        token = config.get("token")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return Request((config.get("server") or SERVER).rstrip("/") + "/", body, headers)

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        if not isinstance(answer, dict) or "id" not in answer:
            return not_as_expected(response)
        return Outcome(Result.SENT, response_id=str(answer["id"])[:200])
