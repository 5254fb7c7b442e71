"""PagerDuty: Events API v2. One incident an alert: it is opened, acknowledged and resolved by its dedup key, however often that is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.senders.base import ASKING, Field, Limits, Message, Outcome, Result
from fleet.alerts.channels.senders.http import HttpSender, Request, not_as_expected
from fleet.alerts.channels.senders.text import body_of, title_of
from fleet.guard import Guard

API = "https://events.pagerduty.com"
SEVERITIES = {"urgent": "critical", "warning": "warning", "note": "info"}
ACTIONS = {"acknowledged": "acknowledge", "snoozed": "acknowledge", "resolved": "resolve"} | dict.fromkeys(
    {*ASKING, "summary"}, "trigger"
)


class PagerDuty(HttpSender):
    name = "pagerduty"
    label = "PagerDuty"
    fields = (
        Field("routing_key", _("Integration key"), _("PagerDuty, the service, Integrations, Events API V2: 32 signs"), secret=True, max_length=64),
        Field("api_url", _("Events API"), _("https://events.eu.pagerduty.com for accounts in the EU"), kind="url", default=API, required=False),
    )  # fmt: skip
    # A summary takes 1,024 characters, an event 512 KB; 120 events a minute.
    limits = Limits(title=1_024, text=8_000, per_minute=100)
    idempotent = True
    gathers = False

    def send(self, message: Message, config: Mapping[str, str], guard: Guard) -> Outcome:
        if message.event == "test":
            # Nobody is to be left with an incident that a test opened.
            opened = super().send(replace(message, event="opened"), config, guard)
            return (
                super().send(replace(message, event="resolved"), config, guard)
                if opened.result == Result.SENT
                else opened
            )
        if message.event not in ACTIONS:
            # An incident says who works on it, not how bad it has become meanwhile.
            return Outcome(Result.SENT)
        return super().send(message, config, guard)

    def request(self, message: Message, config: Mapping[str, str]) -> Request:
        action = ACTIONS[message.event]
        event: dict[str, Any] = {
            "routing_key": config["routing_key"],
            "event_action": action,
            "dedup_key": message.thread or message.key,
        }
        if action == "trigger":
            event |= {
                "payload": {
                    "summary": title_of(message, self.limits),
                    "source": "rackrent",
                    "severity": SEVERITIES.get(message.severity, "info"),
                    "timestamp": message.sent_at.isoformat(),
                    "custom_details": {"text": body_of(message, self.limits), **dict(message.facts)},
                },
                "links": [{"href": link.url, "text": link.label} for link in (message.link, *message.acts)],
                "client": "Rackrent",
                "client_url": message.link.url,
            }
        base = (config.get("api_url") or API).rstrip("/")
        return Request(f"{base}/v2/enqueue", event)

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        if not isinstance(answer, dict) or answer.get("status") != "success":
            return not_as_expected(response)
        return Outcome(Result.SENT, response_id=str(answer.get("dedup_key", ""))[:200])

    def refused(self, answer: Any, detail: str) -> Outcome:
        errors = answer.get("errors") if isinstance(answer, dict) else None
        said = " ".join(map(str, errors)) if isinstance(errors, list) else ""
        broken = "routing_key" in said or "routing key" in said.lower()
        result, code = (Result.BROKEN, "unauthorized") if broken else (Result.REFUSED, "refused")
        return Outcome(result, code, f"{detail} {said}".strip()[:200])
