"""The events of an alert in words: what happened, who did it, and whether anybody was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from fleet.alerts.models import Alert, AlertEvent, AlertEventKind
from fleet.alerts.rule_words import rule_words
from fleet.alerts.words import CLOSED_WORDS, WOKE_WORDS, unanswered_words
from fleet.teams.actor_words import actor_text

# A flapping alert writes events by the thousand; its page shows the newest.
EVENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Happening:
    event: AlertEvent

    @property
    def who(self) -> str:
        """A person, a script, or "" for Rackrent itself."""
        return self.event.actor.display_name if self.event.actor else actor_text(self.event.actor_label)

    @property
    def detail(self) -> str:
        tell = DETAILS.get(AlertEventKind(self.event.kind))
        said = tell(self.event.values) if tell else ""
        quiet = _("nobody was told: %(why)s") % {"why": self.event.get_quiet_display()} if self.event.quiet else ""
        return " · ".join(part for part in (said, quiet) if part)


def history_of(alert: Alert) -> list[Happening]:
    """Newest first."""
    events = alert.events.select_related("actor").order_by("-at", "-pk")[:EVENTS_SHOWN]
    return [Happening(event) for event in events]


def _snoozed(values: Mapping[str, Any]) -> str:
    if not values.get("until"):
        return _("until it gets worse")
    until = timezone.localtime(datetime.fromisoformat(values["until"]))
    return _("until %(at)s") % {"at": date_format(until, "Y-m-d H:i")}


def _escalated(values: Mapping[str, Any]) -> str:
    why = unanswered_words(values["after_minutes"]) if values.get("after_minutes") else ""
    to = _("to %(name)s") % {"name": values["to"]} if values.get("to") else ""
    return ", ".join(part for part in (to, why) if part)


def _signals(values: Mapping[str, Any]) -> str:
    return ", ".join(str(rule_words(kind).name) for kind in values.get("kinds", ()))


DETAILS: Mapping[AlertEventKind, Callable[[Mapping[str, Any]], str]] = {
    AlertEventKind.ACKNOWLEDGED: lambda values: f"“{values['note']}”" if values.get("note") else "",
    AlertEventKind.SNOOZED: _snoozed,
    AlertEventKind.ESCALATED: _escalated,
    AlertEventKind.SIGNAL: _signals,
    AlertEventKind.WOKE: lambda values: str(WOKE_WORDS.get(values.get("why", ""), "")),
    AlertEventKind.RESOLVED: lambda values: str(CLOSED_WORDS.get(values.get("why", ""), "")),
}
